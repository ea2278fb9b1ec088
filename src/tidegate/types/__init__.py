"""The vocabulary that every part of Tidegate shares.

| module | contents |
|---|---|
| `errors` | `InputError`, and checks of arguments |
| `window` | sides, clocks, windows and conditions: which rows match |
| `budget` | how much may be buffered |
| `rows` | rows and results as columns |
| `join_model` | what is learned of the streams of a join |
| `setting` | what a policy or a sampler knows of its join |
| `state` | state as named arrays, which classes declare |

Nothing here computes a join. Classes that hold the user's input are frozen, and check it when they are made.
"""

from tidegate.types.budget import Budget as Budget
from tidegate.types.budget import Split as Split
from tidegate.types.errors import InputError as InputError
from tidegate.types.errors import check_choice as check_choice
from tidegate.types.errors import first_missing as first_missing
from tidegate.types.errors import perhaps as perhaps
from tidegate.types.errors import refuse_class as refuse_class
from tidegate.types.join_model import JoinModel as JoinModel
from tidegate.types.rows import POLICY_PREFIX as POLICY_PREFIX
from tidegate.types.rows import Pairs as Pairs
from tidegate.types.rows import Rows as Rows
from tidegate.types.rows import Sampled as Sampled
from tidegate.types.setting import Buckets as Buckets
from tidegate.types.setting import Future as Future
from tidegate.types.setting import Learned as Learned
from tidegate.types.setting import Setting as Setting
from tidegate.types.setting import Step as Step
from tidegate.types.state import ArrayField as ArrayField
from tidegate.types.state import Attribute as Attribute
from tidegate.types.state import Field as Field
from tidegate.types.state import Nested as Nested
from tidegate.types.state import Numbers as Numbers
from tidegate.types.state import Opposites as Opposites
from tidegate.types.state import Record as Record
from tidegate.types.state import State as State
from tidegate.types.state import Stateful as Stateful
from tidegate.types.state import TimeOrNone as TimeOrNone
from tidegate.types.state import Tuple as Tuple
from tidegate.types.state import Unused as Unused
from tidegate.types.state import as_part as as_part
from tidegate.types.state import parts_of as parts_of
from tidegate.types.window import FAR as FAR
from tidegate.types.window import FOREVER as FOREVER
from tidegate.types.window import SIDES as SIDES
from tidegate.types.window import Array as Array
from tidegate.types.window import Band as Band
from tidegate.types.window import Clocks as Clocks
from tidegate.types.window import Combine as Combine
from tidegate.types.window import Comparison as Comparison
from tidegate.types.window import Condition as Condition
from tidegate.types.window import Last as Last
from tidegate.types.window import Order as Order
from tidegate.types.window import Side as Side
from tidegate.types.window import StepSize as StepSize
from tidegate.types.window import Time as Time
from tidegate.types.window import Window as Window
from tidegate.types.window import WindowSpan as WindowSpan
from tidegate.types.window import other_side as other_side
