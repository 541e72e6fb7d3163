"""The lists of the dashboard: which rows, which columns, which row opens what.

Invariant: a list is constant; its rows are a function of the picture and the place. A column says a
value, by which rows are sorted and filtered, and a text, which is safe to print.
"""
