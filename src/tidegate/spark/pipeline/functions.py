"""The functions that the Spark SQL of a pipeline file may call.

A pipeline file is data: its expressions compute with the columns of a row. Some of Spark's functions do more:
`reflect` runs any Java method in the process of the query, others read files or report settings of the session. So
only the functions listed here may be called, and no sub-queries. A function that is not listed, such as one that a
user registered, is refused by name.

The text is split into tokens as Spark splits it, for the part of its grammar that an expression needs. Text that the
two could split differently is refused: comments, `$` quoting, and letters outside ASCII that are not in quotes
(Spark's lexer turns some of them into ASCII letters).
"""

from __future__ import annotations

import difflib
import re
from typing import Final, NamedTuple

from tidegate.types import InputError

ALLOWED: Final = frozenset(
    """
    abs acos acosh add_months aes_decrypt aes_encrypt aggregate and any any_value approx_count_distinct
    approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate array
    array_agg array_append array_compact array_contains array_distinct array_except array_insert array_intersect
    array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_sort
    array_union arrays_overlap arrays_zip ascii asin asinh assert_true atan atan2 atanh avg base64 between bigint
    bin binary bit_and bit_count bit_get bit_length bit_or bit_xor bitmap_and_agg bitmap_bit_position
    bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg bool_and bool_or boolean bround btrim
    cardinality case cast cbrt ceil ceiling char char_length character character_length chr coalesce collate
    collation collect_list collect_set collect_union concat concat_ws contains conv convert_timezone corr cos cosh
    cot count count_if count_min_sketch counter_diff covar_pop covar_samp crc32 csc cume_dist curdate current_date
    current_time current_timestamp current_timezone date date_add date_diff date_format date_from_unix_date
    date_part date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear dec decimal
    decode degrees dense_rank div double e element_at elt encode endswith equal_null every exists exp explode
    explode_outer expm1 extract factorial filter find_in_set first first_value flatten float floor forall
    format_number format_string from_avro from_base32 from_csv from_json from_unixtime from_utc_timestamp from_xml
    get get_json_object getbit greatest grouping grouping_id hash hex histogram_numeric hll_sketch_agg
    hll_sketch_estimate hll_union hll_union_agg hmac hour hypot if ifnull ilike in initcap inline inline_outer instr
    int is_valid_utf8 is_valid_variant is_variant_null isnan isnotnull isnull jaro_winkler_similarity
    json_array_length json_object_keys json_tuple kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_sketch_get_n_bigint kll_sketch_get_n_double
    kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
    kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
    kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint
    kll_sketch_to_string_double kll_sketch_to_string_float kurtosis lag last last_day last_value lcase lead least
    left len length levenshtein like listagg ln localtime localtimestamp locate log log10 log1p log2 lower lpad
    ltrim luhn_check make_date make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz
    make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat map_contains_key map_entries map_filter
    map_from_arrays map_from_entries map_keys map_values map_zip_with mask max max_by md5 mean measure median min
    min_by minute mod mode monotonically_increasing_id month monthname months_between named_struct nanvl negative
    next_day not now nth_value ntile nullif nullifzero numeric nvl nvl2 octet_length or overlay parse_json parse_url
    percent_rank percentile percentile_approx percentile_cont percentile_disc pi pmod posexplode posexplode_outer
    position positive pow power printf quarter quote radians raise_error rand randn random randstr rank reduce
    regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat replace
    reverse right rint rlike round row_number rpad rtrim schema_of_avro schema_of_csv schema_of_json
    schema_of_variant schema_of_variant_agg schema_of_xml sec second sentences sequence session_window sha sha1 sha2
    shiftleft shiftright shiftrightunsigned shuffle sign signum sin sinh size skewness slice smallint some
    sort_array soundex space spark_partition_id split split_part sqrt st_asbinary st_geogfromwkb st_geomfromwkb
    st_setsrid st_srid stack startswith std stddev stddev_pop stddev_samp str_to_map string string_agg struct substr
    substring substring_index sum tan tanh theta_difference theta_intersection theta_intersection_agg
    theta_sketch_agg theta_sketch_estimate theta_union theta_union_agg time time_bucket time_diff time_from_micros
    time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp
    timestamp_ltz timestamp_micros timestamp_millis timestamp_nanos timestamp_ntz timestamp_seconds timestampadd
    timestampdiff tinyint to_avro to_base32 to_binary to_char to_csv to_date to_json to_number to_time to_timestamp
    to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar to_variant_object to_xml
    transform transform_keys transform_values translate trim trunc try_add try_aes_decrypt try_avg try_cast
    try_divide try_element_at try_make_interval try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz
    try_mod try_multiply try_parse_json try_parse_url try_subtract try_sum try_to_binary try_to_date try_to_number
    try_to_time try_to_timestamp try_url_decode try_validate_utf8 try_variant_array_append try_variant_get
    try_variant_insert try_variant_set tuple_difference_double tuple_difference_integer
    tuple_difference_theta_double tuple_difference_theta_integer tuple_intersection_agg_double
    tuple_intersection_agg_integer tuple_intersection_double tuple_intersection_integer
    tuple_intersection_theta_double tuple_intersection_theta_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
    tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer tuple_union_agg_double
    tuple_union_agg_integer tuple_union_double tuple_union_integer tuple_union_theta_double
    tuple_union_theta_integer typeof ucase unbase64 unhex uniform unix_date unix_micros unix_millis unix_nanos
    unix_seconds unix_timestamp upper url_decode url_encode uuid validate_utf8 var_pop var_samp varchar variance
    variant_array_append variant_delete variant_explode variant_explode_outer variant_get variant_insert variant_set
    variant_strip_nulls vector_avg vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm
    vector_normalize vector_sum weekday weekofyear when width_bucket window window_time xpath xpath_boolean
    xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string xxhash64 year zeroifnull
    zip_with
    """.split()  # noqa: SIM905 - a list literal has a line for each name
)
"""Functions of Spark 4.0 to 4.3 that only compute with their arguments, and types that take a number in brackets."""

_RUNS_CODE: Final = "it runs code outside of the query"
_SESSION: Final = "it reports settings of the session that runs the query"
_FILES: Final = "it reports the files that are read; select _metadata.file_path instead"
_READS_FILES: Final = "it can read a file or a URL"
_TABLES: Final = "it makes a table, and only columns can be computed here"
REFUSED: Final = {
    **dict.fromkeys(("java_method", "reflect", "try_reflect"), _RUNS_CODE),
    **dict.fromkeys(("current_catalog", "current_database", "current_path", "current_schema"), _SESSION),
    **dict.fromkeys(("current_user", "session_user", "user", "version"), _SESSION),
    **dict.fromkeys(("input_file_block_length", "input_file_block_start", "input_file_name"), _FILES),
    **dict.fromkeys(("from_protobuf", "to_protobuf"), _READS_FILES),
    **dict.fromkeys(("collations", "python_worker_logs", "range", "sql_keywords"), _TABLES),
    "identifier": "it makes a name out of text",
}
"""Functions of Spark that a pipeline file may not call, and why."""

_MAX_ARGUMENTS: Final = {"from_avro": 2, "from_xml": 2, "schema_of_avro": 1, "schema_of_xml": 1}
"""The maximum number of arguments; one more would be options, which can name a file or a URL."""

# A bare `user` is left out: it is most often a column.
_CALLED_WITHOUT_BRACKETS: Final = frozenset(("current_user", "session_user"))
KEYWORDS: Final = frozenset(
    """
    all and any as between both by case collate distinct div else escape exists filter following for from group ilike
    in is leading like not on or over preceding regexp rlike some then trailing when where within
    """.split()  # noqa: SIM905 - a list literal has a line for each name
)
"""Words before a bracket that is not a call. None is a function that has effects outside of the query."""
_QUERY_KEYWORDS: Final = frozenset(("from", "map", "reduce", "select", "table", "values", "with"))
"""Keywords that can begin a sub-query after a bracket."""
_FORBIDDEN: Final = {
    "select": "a sub-query",
    "using": "a script",
}

_MAX_DEPTH: Final = 100
_MAX_LENGTH: Final = 1 << 16
_TOKENS: Final = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
    | (?P<comment>--|/\*)
    | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | `(?P<quoted>(?:[^`]|``)*)`
    | (?P<glued>\w*\w[rR](?=['"]))
    | (?P<word>[A-Za-z0-9_]+)
    | (?P<sign>[-+*/%&|^~!=<>.,:?()\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    """Of a word or a quoted name, in lower case."""


def check_expression(text: str) -> None:
    """Refuse an expression that calls a function, or has a construct, that a pipeline file may not have.

    Raises
    ------
    InputError
        Names the function or construct, the reason and the remedy.

    Examples
    --------
    >>> check_expression("lower(name) LIKE 'a%' AND price IN (1, 2)")
    >>> check_expression("`reflect`('java.lang.System', 'exit', 1)")
    Traceback (most recent call last):
    tidegate.InputError: reflect may not be called in a pipeline file: it runs code outside of the query; leave
    it out, or compute the column in Python and call tidegate.join there
    """
    if len(text) > _MAX_LENGTH:
        raise InputError(f"is {len(text):,} characters long; write at most {_MAX_LENGTH:,}")
    tokens = _split(text)
    _check_depth(tokens)
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else _Token("", "")
        if token.kind == "word" and token.text in _FORBIDDEN:
            raise InputError(
                f"{token.text.upper()} would begin {_FORBIDDEN[token.text]}, which a pipeline file may not have; "
                "leave it out, or put it into backticks if it is the name of a column"
            )
        if token.kind in {"word", "quoted"} and token.text in _CALLED_WITHOUT_BRACKETS:
            raise _refusal(token.text)
        if token == _OPEN:
            _check_call(tokens, at)
        elif before == _OPEN and token.kind == "word" and token.text in _QUERY_KEYWORDS:
            called = at + 1 < len(tokens) and tokens[at + 1] == _OPEN
            if not (called and token.text in ALLOWED):
                raise InputError(
                    f"({token.text.upper()} would begin a sub-query, which a pipeline file may not have; "
                    "leave it out, or put it into backticks if it is the name of a column"
                )


_OPEN: Final = _Token("sign", "(")


def _split(text: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        kind = match.lastgroup if match else None
        if match is None or kind is None:
            raise InputError(
                f"{text[at : at + 20]!r}, at character {at + 1}, cannot be read; close every quote, and put a name "
                "with other letters than a to z into backticks"
            )
        if kind == "comment":
            raise InputError(
                f"a comment begins at character {at + 1}; leave it out, and write a - (-b) for two minus signs"
            )
        if kind == "glued":
            # As the end of a number, the r could begin a raw string.
            raise InputError(f"{match[kind]} and a quote at character {at + 1} need a space in between")
        at = match.end()
        if kind != "space":
            word = match[kind].replace("``", "`") if kind == "quoted" else match[kind]
            tokens.append(_Token(kind, word if kind == "string" else word.lower()))
    return tokens


def _check_depth(tokens: list[_Token]) -> None:
    depth = 0
    for token in tokens:
        if token.kind == "sign" and token.text in "([":
            depth += 1
        elif token.kind == "sign" and token.text in ")]":
            depth -= 1
        if depth > _MAX_DEPTH:
            raise InputError(f"is nested more than {_MAX_DEPTH} deep; simplify it")


def _check_call(tokens: list[_Token], at: int) -> None:
    """Check the name before an opening bracket, if it is a call."""
    if not at:
        return
    name = tokens[at - 1]
    if name.kind == "sign":
        if name.text in ")]":
            raise InputError(
                "an expression in brackets is called; write the plain name of a function before ("
            )
        return
    if name.kind == "string":
        raise InputError(f"{name.text} before ( is not the name of a function; write it without quotes")
    if at > 1 and tokens[at - 2] == _Token("sign", "."):
        raise InputError(
            f"the call of {name.text!r} has a dot in its name; write the plain name of a function of Spark"
        )
    if name.kind == "word" and name.text in KEYWORDS:
        return
    if name.text not in ALLOWED:
        raise _refusal(name.text)
    most = _MAX_ARGUMENTS.get(name.text)
    if most is not None and _arguments(tokens, at) > most:
        raise InputError(
            f"{name.text} with more than {most} arguments may not be called in a pipeline file: its options can name "
            f"a file or a URL; leave them out, or compute the column in Python and call tidegate.join there"
        )


def _arguments(tokens: list[_Token], at: int) -> int:
    """The number of arguments of the call whose bracket opens here; at least one."""
    depth, count = 0, 1
    for token in tokens[at:]:
        if token.kind != "sign":
            continue
        depth += (token.text in "([") - (token.text in ")]")
        if not depth:
            break
        count += token.text == "," and depth == 1
    return count


def _refusal(name: str) -> InputError:
    instead = "leave it out, or compute the column in Python and call tidegate.join there"
    if name in REFUSED:
        return InputError(f"{name} may not be called in a pipeline file: {REFUSED[name]}; {instead}")
    near = difflib.get_close_matches(name, ALLOWED, n=1, cutoff=0.75)
    hint = f"; did you mean {near[0]}?" if near else ""
    return InputError(
        f"{name[:80]!r} is not a function that a pipeline file may call{hint}; use one that Spark has built in, "
        "or compute the column in Python and call tidegate.join there"
    )
