"""The log: streams of frames in segment files, appended in groups, read by offset or time."""
