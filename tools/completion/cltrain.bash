# Completion in bash for the programs of cltrain, by what their tables of options say (--help, asked with CLTRAIN_COMPLETION).

_cltrain() {
    local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= name values wanted= names=() words=()
    if [[ $current == "=" ]]; then # a word of its own to bash
        current=
    elif [[ $before == "=" ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [[ $program =~ cltrain-(probe|offline)$ && $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} != -* ]]; then command=${COMP_WORDS[1]}; fi
    while IFS= read -r name; do
        if [[ $name == -*$'\t'* ]]; then
            values=${name#*$'\t'} name=${name%%$'\t'*}
            names+=("$name")
            if [[ $name == "$before" ]]; then wanted=$values; fi
        elif [[ $name =~ ^\ \ ([a-z][a-z0-9_]*)(\[.*)?\ \ * ]]; then
            words+=("${BASH_REMATCH[1]}")
        fi
    done < <(CLTRAIN_COMPLETION=1 "$program" ${command:+"$command"} --help 2>/dev/null)
    if [[ $wanted == *'|'* ]]; then
        COMPREPLY=($(compgen -W "${wanted//|/ }" -- "$current"))
    elif [[ -z $wanted && $current == -* ]]; then
        COMPREPLY=($(compgen -W "${names[*]}" -- "$current"))
    else
        COMPREPLY=($(compgen -f -- "$current"))
        if [[ -z $wanted && $program == *cltrain-run ]]; then COMPREPLY+=($(compgen -c -- "$current")); fi
        if [[ -z $wanted && -z $command ]]; then COMPREPLY+=($(compgen -W "${words[*]}" -- "$current")); fi
    fi
}

complete -o filenames -F _cltrain cltrain-train cltrain-predict cltrain-generate cltrain-report cltrain-offline cltrain-probe cltrain-run cltrain-conform
