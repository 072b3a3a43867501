"""Line coverage of the parsers, from gcovr's JSON.

    coverage.py ROOT BUILD

A parser of which less than 90 % is reached is an error. A parser is a file, or functions of a file whose rest does something else.
"""
import json
import os
import re
import subprocess
import sys

ROOT, BUILD = sys.argv[1:3]
LEAST = 90  # percent
PARSERS = {
    "safetensors": ["runtime/train/safetensors.c"],
    "weight files": ["runtime/train/weight_files.c"],
    "checkpoint": ["runtime/train/position.c"],
    "NPY": ["runtime/data/npy.c", "runtime/data/npy_header.c"],
    "IDX": ["runtime/data/idx.c"],
    "gzip": ["runtime/base/source.c"],
    "CIFAR-10": ["runtime/data/cifar.c", "runtime/data/records.c"],
    "CSV": ["runtime/data/csv.c", "runtime/data/csv_reader.c", "runtime/base/number.c"],
    "ONNX files": [f"runtime/exchange/onnx/{name}.c" for name in (
        "model", "file", "names", "literal")] + ["runtime/exchange/onnx/wire.c:read_varint,read_fixed,clt_wire_value,clt_wire_next"],
    "ONNX graphs": [f"runtime/exchange/onnx/{name}.c" for name in (
        "build", "call", "inputs", "fold", "fold_arithmetic", "fold_selection", "fold_shapes", "rules_attention", "rules_dropout", "rules_image", "rules_index", "rules_network", "rules_norm", "rules_pointwise",
        "rules_product", "rules_shape")],
    "config.json": ["runtime/models/language.c"],
    "problems": ["backends/tune/key.c", "backends/tune/distance.c:clt_tune_distance"],
    "tuning_results": ["backends/tune/file.c", "backends/tune/database.c:read_header,holds,clt_tune_header_fits,is_of_class,clt_tune_read_shipped,"
                 "clt_tune_run_read,read_file"],
    "times": ["runtime/measure/times.c:take_text,take_number,take_whole,take_timing,clt_timings_read,clt_timings_put,drop"],
    "program cache": ["runtime/device/program.c:cache_payload"],
    "peaks": ["runtime/measure/peaks.c:recall,parse,take_word,plausible"],
    "capabilities": ["runtime/device/capability.c:recall"],
    "frames, hello": ["comm/transport/frame.c", "comm/transport/strangers.c:judge,introduce,clt_strangers_advance,place_of,send_answer"],
    "control connection": ["comm/transport/control.c:act,reach_barrier,most_payload,understand,clt_control_read",
                           "comm/transport/failure.c:clt_transport_told,status_here"],
    "messages": ["comm/transport/messages.c"],
    "data connection": ["comm/transport/data.c:match,read_header,read_plain,read_consumed,read_payload,clt_link_read"],
    "tcp store, server": ["comm/rendezvous/tcp_server.c:clt_tcp_read_head,receive,carry_out,set_value,answer_value,answer,answer_waiting,"
                          "serve", "comm/rendezvous/tcp_table.c"],
    "tcp store, client": ["comm/rendezvous/tcp_store.c:receive_answer,exchange,send_request"],
    "redis": ["comm/rendezvous/redis_store.c:feed,read_reply,fail_reply,redis_look,read_url,read_login,read_host", "comm/rendezvous/url.c"],
    "environment": ["comm/rendezvous/environment.c", "comm/rendezvous/nodelist.c", "comm/settings.c"],
    "membership": ["comm/rendezvous/membership.c"],
    "addresses": ["comm/secure/address.c:clt_address_text,read_port,is_port,split,clt_resolve,set_port,address_towards,worth,address_of_interface,"
                  "is_unspecified,find_own_address,read_ports", "comm/transport/connect.c:read_address,read_lost,look_for_lost,check_lost"],
    "launchers": ["tools/cltrain-run/agree.c:take_number,get_count,come,agree_begin,read_end,agree_tell,agree_done,await_news"],
    "options": ["tools/common/option_parser.c:option_parse,parse_option,refuse_option,read_value,read_choice,read_real,find_long,find_letter,"
                "describe_value,distance", "tools/common/numbers.c", "tools/cltrain-train/options.c", "tools/cltrain-train/data_spec.c",
                "tools/cltrain-train/compress_spec.c"],
    "shapes": ["tools/cltrain-probe/shapes.c:shapes_add_line,is_phase,read_line,shapes_add,shapes_add_file,is_listed,check_names,shapes_add_embedded"],
    "compare": ["tools/cltrain-probe/compare.c", "tools/cltrain-probe/compare_read.c"],
    "survey": ["tools/survey/survey.c:take_device,take_probed,take_line,judge_end,device_of,set_status,find_nonsense,number_equal_ids",
               "tools/survey/document.c:document_read_device,read_text"],
    "bench": ["tools/cltrain-probe/bench_run.c:take_line,take_begin,take_row,take_samples,copy_text,copy_number,judge_end,give_up"],
}


def lines_of_functions(path, names):
    """The lines of functions that begin at the margin and end with a brace there."""
    wanted, found, inside = set(), set(), False
    with open(path) as file:
        for number, line in enumerate(file, 1):
            begin = re.match(r"[a-z].*?\b(\w+)\(", line)
            if not inside and begin and begin.group(1) in names:
                inside = True
                found.add(begin.group(1))
            if inside:
                wanted.add(number)
            if line.startswith("}") or (inside and line.rstrip().endswith(";") and line[0] not in " \t"):
                inside = False
    if set(names) - found:
        sys.exit(f"{path} has no {', '.join(sorted(set(names) - found))}")
    return wanted


def main():
    output = subprocess.run(["gcovr", "-r", ROOT, "--object-directory", BUILD, "--json", "--gcov-ignore-parse-errors", BUILD],
                            capture_output=True, text=True)
    if output.returncode:
        sys.exit(output.stderr)
    hits = {}
    for file in json.loads(output.stdout)["files"]:
        lines = hits.setdefault(file["file"], {})
        for line in file["lines"]:
            if not line.get("gcovr/noncode"):
                lines[line["line_number"]] = lines.get(line["line_number"], 0) + line["count"]
    total, poor = [0, 0], []
    for name, files in PARSERS.items():
        count, missed = [0, 0], []
        for entry in files:
            path, _, functions = entry.partition(":")
            lines = hits.get(path, {})
            wanted = lines_of_functions(os.path.join(ROOT, path), functions.split(",")) if functions else set(lines)
            for number in sorted(wanted & set(lines)):
                count[0] += lines[number] > 0
                count[1] += 1
                if not lines[number]:
                    missed.append(f"{os.path.basename(path)}:{number}")
        total = [a + b for a, b in zip(total, count)]
        share = 100 * count[0] / count[1] if count[1] else 0
        if share < LEAST:
            poor.append(f"{name} ({share:.1f} %)")
        print(f"{name:20} {count[0]:5} of {count[1]:5} lines {share:6.1f} %" + (f"  without {' '.join(missed[:12])}" if missed else ""))
    print(f"{'all':20} {total[0]:5} of {total[1]:5} lines {100 * total[0] / max(1, total[1]):6.1f} %")
    if poor:
        sys.exit(f"kept inputs reach less than {LEAST} % of: " + ", ".join(poor))


main()
