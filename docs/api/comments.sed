# Comments of C as Doxygen wants those that it reads: /** in front of what they describe, /**< behind it. A title between rules stays as it is.
/^\/\* ----/b
1s,^/\*$,/** \\file,
s,^\( *\)/\*\([^*<]\),\1/**\2,
s,\([^ ]\) */\*\([^*<]\),\1 /**<\2,
s,<\(/\?[a-z_]*\)>,\&lt;\1\&gt;,g
