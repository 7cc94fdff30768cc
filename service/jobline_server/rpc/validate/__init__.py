"""Checks the fields of requests by hand; each refusal names the wrong field.

A check takes a raw field and returns the value that commands carry, or raises `Refused`, so a field
that was converted was checked. Field paths are relative; a caller that iterates over a list adds
the entry as prefix (`within`). Messages name what is allowed and never repeat the value.
"""
