"""Paragraphs on who may call from elsewhere, and how a client and a daemon know each other."""

ACCESS = {
    "DSS2066": """There is no principal of this name and kind, token:NAME or cert:NAME: it was never
        added, or was removed. dssctl principals ls lists the principals.""",
    "DSS2067": """There is a principal of this name. Nothing was changed, and its token stays valid.
        Give it other permissions with dssctl principals edit, another token with dssctl tokens
        rotate, or remove it first.""",
    "DSS2235": """The session of a connected client cannot be given to another principal. Nothing
        was changed. Stop the client, and adopt its session before that expires: it is kept for ten
        seconds at least. A pattern such as 'billing-*' leaves connected clients out.""",
    "DSS2236": """A session belongs to the principal that opened it. Its id is no secret: otherwise
        anybody who knew it could take the client's place. This one was opened by another principal,
        perhaps before the client had a token. Nothing was changed. An operator can give it to the
        new one with dssctl sessions adopt; or give the client another id.""",
    "DSS2237": """A schedule acts for the principal that created, edited or resumed it last, a bulk
        job for its creator, with the permissions that they have at that moment. This principal was
        removed, has expired, waits for its confirmation after a restore, or lost a role. So the run
        failed or the job stopped, and did nothing. dssctl schedules describe and dssctl jobs
        describe name the principal; give it the role, or let one that has the role take over.""",
    "DSS3062": """The daemon knows as many principals as it can. A token is meant for a program or
        a person, not for a call. Remove those that nobody needs.""",
    "DSS5013": """This listener serves known principals only, and the caller is none: there was no
        token or no certificate, or it is unknown, has expired or was removed; the message says
        which. Nothing was done. A client gets its token with --token-file or DSSCTL_TOKEN_FILE, its
        certificate with --tls-cert and --tls-key; an administrator adds one with dssctl tokens
        add.""",
    "DSS5016": """An administrator removed or changed the principal, or its token or certificate
        expired, while the call ran. The call was cut off within a second, so a change may be done
        or not. Clients call again by themselves: one that is still allowed goes on, also with a
        token that was rotated in its file; otherwise DSS5013 or DSS5009 says what is missing.""",
    "DSS5014": """Bulk jobs stage files, and read segment files in place, by their paths. Only a
        process on the daemon's machine sees these, and it comes by the unix socket. Drive the job
        there; dssctl can make it and follow it from anywhere.""",
    "DSS5015": """The client reached something at this endpoint, and could not make sure that it is
        the daemon: its certificate is signed by nobody that the client trusts, is for another name,
        or is not valid at this time. No token and no record was sent. Say who signs with --tls-ca,
        reach the daemon by a name that is in its certificate, and check the clocks.""",
}
