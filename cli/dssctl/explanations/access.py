"""Paragraphs on who may call from elsewhere, and how a client and a daemon know each other."""

ACCESS = {
    "DSS2066": """Nobody has this name with its kind, token:NAME or cert:NAME: they were never
        added, or were removed. dssctl principals ls shows who is known.""",
    "DSS2067": """Somebody of this name is known. Nothing was changed, and their token holds. Give
        them other permissions with dssctl principals edit, another token with dssctl tokens
        rotate, or remove them first.""",
    "DSS2235": """A client that is connected answers for its session, so nobody gives that away
        under it. Nothing was changed. Stop the client; its session is kept for its expiry, ten
        seconds at least, and is adopted meanwhile. With a pattern, as 'billing-*', those that are
        connected are left out.""",
    "DSS2236": """A session belongs to who opened it, for its id is no secret: whoever knew it could
        take the place of its client. This one was opened under another name, as before the client
        had a token. Nothing was changed. An operator gives it with dssctl sessions adopt; or give
        the client another id.""",
    "DSS2237": """A schedule acts for who made, edited or resumed it last, a bulk job for who made
        it, with what they may do at that moment. They were removed, have expired, wait to be
        confirmed after a restore, or lost a role since. A run failed or a job was not gone on with,
        and nothing was done by it. dssctl schedules describe and dssctl jobs describe name them;
        give them the role, or let somebody who has it take it on.""",
    "DSS3062": """The daemon knows as many principals as it can. A token is meant for a program or
        a person, not for a call. Remove those that nobody needs.""",
    "DSS5013": """This listener serves whoever is known, and the caller is not: there was no token
        or no certificate, or it is unknown, has expired or was removed; the message says which.
        Nothing was done. A client gets its token with --token-file or DSSCTL_TOKEN_FILE, its
        certificate with --tls-cert and --tls-key; an administrator adds one with dssctl tokens
        add.""",
    "DSS5016": """An administrator removed or changed the caller, or their token or certificate has
        ended, while the call ran; it was cut off within a second, so what it was to change may
        be done or not. Clients ask again by themselves: whoever still may goes on, also with a
        token that was rotated in its file; else DSS5013 or DSS5009 says what is missing.""",
    "DSS5014": """Bulk jobs stage files, and read segment files in place, by their paths. Only a
        process on the daemon's machine sees these, and it comes by the unix socket. Drive the job
        there; dssctl can make it and follow it from anywhere.""",
    "DSS5015": """The client reached something at this endpoint, and could not make sure that it is
        the daemon: its certificate is signed by nobody that the client trusts, is for another name,
        or is not valid at this time. No token and no record was sent. Say who signs with --tls-ca,
        reach the daemon by a name that is in its certificate, and check the clocks.""",
}
