function source_of(object) {
    sub(/.*\.dir\//, "", object)
    sub(/^\.\//, "", object)
    if (sub(/^__\//, "", object) == 0) object = "runtime/" object
    sub(/\.o$/, "", object)
    return object
}

BEGIN { read_rooms() }

{
    colon = index($0, ":")
    file = source_of(substr($0, 1, colon - 1))
    n = split(substr($0, colon + 1), word, " ")
    name = word[n]
    if (name !~ /^clt_/) next
    if (word[n - 1] == "U") { calls++; from[calls] = file; to[calls] = name }
    else defined[name] = file
}

END {
    for (i = 1; i <= calls; i++) {
        if (!(to[i] in defined)) continue
        room = room_of(from[i]); other = room_of(defined[to[i]])
        if (!(room in may)) { print from[i] ": room " room " is unknown: add it to rooms.txt"; bad++; continue }
        # What the build generates belongs to whoever declares it.
        if (!(other in may) || (room, other) in allowed) { seen++; continue }
        print from[i] ": " room " may not use " to[i] " of " defined[to[i]]
        bad++
    }
    if (seen < 100) { print "only " seen + 0 " uses found: wrong list?"; exit 1 }
    if (bad) { print bad " uses against the order of the rooms"; exit 1 }
    print seen " uses, all in order"
}
