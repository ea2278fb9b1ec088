"""The function `tidegate.join`, and how the importance of rows is read from its arguments."""
