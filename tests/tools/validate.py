"""validate.py SCHEMA DOCUMENT...: whole JSON, without NaN, of the schema."""
import json
import sys


def no_constant(name):
    raise ValueError(name + " is not JSON")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=no_constant)


def main():
    try:
        from jsonschema import Draft202012Validator as Validator
    except ImportError:  # it is then only read
        for path in sys.argv[2:]:
            load(path)
        print("jsonschema is not installed: the JSON was only read")
        return 0
    schema = load(sys.argv[1])
    Validator.check_schema(schema)
    bad = 0
    for path in sys.argv[2:]:
        for error in Validator(schema).iter_errors(load(path)):
            print(f"{path}: {list(error.absolute_path)}: {error.message[:300]}")
            bad += 1
    return bad > 0


sys.exit(main())
