"""Checks of what callers send, by hand, each naming the field at fault.

A check takes a raw field and gives back the value that commands carry, or raises `Refused`: so that
whoever converts a field has checked it. Paths of fields are relative; who walks a list puts its
place before them (`within`). Messages say what is allowed and never repeat what was sent.
"""
