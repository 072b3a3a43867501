BEGIN {
    read_rooms()
    may["tools"] = "tools"
    allowed["tools", "tools"] = 1
    # Public headers that belong to one room; the others are for all.
    split("device graph ops data train comm", list, " ")
    for (i in list) owner["cltrain/" list[i] ".h"] = list[i]
}

function folder_of(path) {
    sub(/\/[^\/]*$/, "", path)
    return path
}

function refuse(why) {
    printf "%s:%d: %s: %s\n", FILENAME, FNR, name, why
    bad++
}

FNR == 1 {
    room = room_of(FILENAME)
    if (!(room in may)) { name = "room " room; refuse("unknown: add it to the table in includes.sh") }
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    seen++
    name = $0
    sub(/^[^"<]*["<]/, "", name)
    sub(/[">].*$/, "", name)
    if (name ~ /^CL\//) {
        if (room != "device" && room != "backends" && room != "measure" && FILENAME !~ /tools\/cltrain-compile\/[^\/]*$/)
            refuse("OpenCL is for runtime/device, runtime/measure, backends and tools/cltrain-compile")
    } else if (name ~ /^cltrain\//) {
        if (room != "tools" && name == "cltrain/cltrain.h") refuse("the header of everything is for users")
        if (room != "tools" && (name in owner) && !((room, owner[name]) in allowed))
            refuse(room " may not include " owner[name])
    } else if ($0 ~ /"/ && name ~ /\.\./) {
        refuse("written from the root of the sources, please")
    } else if (name ~ /^(runtime|backends|comm|tools|tests)\//) {
        other = room_of(name)
        if (room == "tools") {
            face = folder_of(FILENAME) ~ /^tools\/cltrain-(predict|offline)$/ && folder_of(name) == "tools/cltrain-train" # the same code with another face
            if (folder_of(name) != folder_of(FILENAME) && folder_of(name) != "tools/common" && folder_of(name) != "tools/survey" && !face)
                refuse("a tool knows <cltrain/...>, tools/common, tools/survey and its own folder")
        } else if (!((room, other) in allowed)) {
            refuse(room " may not include " other)
        }
    } else if ($0 ~ /"/ && name ~ /\//) {
        refuse("neither of this folder nor written from the root")
    }
}

END {
    if (!seen) { print "no includes found: wrong folder?"; exit 1 }
    if (bad) { print bad " includes against the order of the rooms"; exit 1 }
    print seen " includes, all in order"
}
