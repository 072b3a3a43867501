# Read by quickstart.sh, check.sh and bench.sh: the packages of Debian 12 that they need, and their set-up.
# POSIX sh. Expects `root`, the folder of the sources.

build_packages="build-essential cmake ninja-build pkg-config ocl-icd-opencl-dev opencl-headers
pocl-opencl-icd libclblast-dev libclfft-dev libgloo-dev zlib1g-dev libjansson-dev libxxhash-dev
librandom123-dev libssl-dev libhiredis-dev libpcre2-dev libjpeg-dev libpng-dev"

# The second and third OpenCL implementation and PyTorch are what results are compared with.
check_packages="$build_packages libcmocka-dev mesa-opencl-icd oclgrind python3 python3-numpy
python3-jsonschema python3-pil python3-onnx libonnx-testdata python3-torch redis-server zsh openmpi-bin libopenmpi-dev iproute2 nftables chromium
debhelper dpkg-dev fakeroot lintian doxygen llvm-15"

# What lint.sh looks with.
lint_packages="$build_packages cppcheck clang-tidy python3"

# PyTorch's side of bench.sh; the BLAS that Debian's PyTorch finds by itself is a slow one.
bench_packages="$build_packages libcmocka-dev python3 python3-numpy"
bench_torch_packages="python3-torch libopenblas0-pthread"

# Prints those of the packages that are not installed.
missing_packages() {
    for package; do
        case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) in
        "install ok installed") ;;
        *) printf ' %s' "$package" ;;
        esac
    done
}

apt_install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" </dev/null
}

# need_packages PACKAGE...: installs what is missing; without root says how, and ends the script.
need_packages() {
    if ! command -v dpkg-query >/dev/null; then
        echo "This is not a Debian system. What is needed has these names in Debian:" "$@" >&2
        return 0
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        echo "These packages are missing. Install them as root and start again:" >&2
        echo "    apt-get update && apt-get install -y --no-install-recommends$missing" >&2
        exit 1
    fi
    echo "Installing$missing"
    # The lists of a fresh machine are empty or old: they are fetched only if need be.
    # shellcheck disable=SC2086
    apt_install $missing || { apt-get update -q </dev/null && apt_install $missing; } || {
        echo "apt-get could not install$missing" >&2
        exit 1
    }
}

# configure FOLDER ARGUMENT...: a build folder that is there keeps its generator.
configure() {
    folder=$1
    shift
    if [ -e "$folder/CMakeCache.txt" ]; then cmake -S "$root" -B "$folder" "$@"
    else cmake -S "$root" -B "$folder" -G Ninja "$@"; fi
}
