# Shared by includes.sh and symbols.sh: reads rooms.txt (-v rooms=FILE) into may[room] and allowed[room, other].
function read_rooms(    line, colon, room, n, i, list) {
    while ((getline line <rooms) > 0) {
        colon = index(line, ":")
        if (line ~ /^#/ || !colon) continue
        room = substr(line, 1, colon - 1)
        may[room] = substr(line, colon + 1)
        n = split(may[room], list, " ")
        for (i = 1; i <= n; i++) allowed[room, list[i]] = 1
    }
}

# "runtime/graph/clone.c" -> "graph", "backends/native/rows.c" -> "backends"
function room_of(path,    part) {
    split(path, part, "/")
    return part[1] == "runtime" ? part[2] : part[1]
}
