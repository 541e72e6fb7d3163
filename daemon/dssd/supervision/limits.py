"""Every bound of what goes on after a mistake, with its unit last and its reason."""

SERVICE_PAUSE_S = 1.0
SERVICE_PAUSE_S_MAX = 60.0
"""A service that met an unforeseen error begins anew after this, twice as long each time, up to a
minute; one that ran for that long begins with the first pause again."""

TRACEBACK_EVERY_S = 10.0
"""Of the unforeseen errors of one part, one traceback is logged in this time: who asks what fails a
thousand times a second must not fill the log. All are counted."""

UNFORESEEN_CHARACTERS_MAX = 300
"""Of an unforeseen error, in what is told of it; the log has all."""

DISK_LOOK_S = 1.0
"""How often it is looked whether the disk is full: soon enough for who is woken by it."""

DISK_ROOM_AFTER_LOOKS = 10
"""Looks without a refusal before there is room again: at the brink, frames are refused in turns."""
