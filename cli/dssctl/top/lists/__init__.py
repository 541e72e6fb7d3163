"""The lists of the dashboard: their rows, their columns, and the screen that a row opens.

Invariant: a list is constant; its rows are a function of the picture and the place. A column gives
a value, by which rows are sorted and filtered, and a text, which is safe to print.
"""
