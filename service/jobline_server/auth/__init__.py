"""Who calls, and what they may do: API keys, JSON Web Tokens, certificates of clients, and roles.

`access_file` reads the file that says so, `authenticator` finds the caller behind a token or a
certificate, and `grants` answers whether a caller may do something to a queue. This room knows no
call and no transport: it is handed what a caller sent, and names what is wrong with it.
"""
