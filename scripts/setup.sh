#!/usr/bin/env bash
# Prepares a machine for building Motley: on Debian 12 it installs the missing packages and nothing else; on other systems it lists the
# requirements and checks the essential ones. Prints nothing when nothing is missing.
# usage: scripts/setup.sh [--dev]      --dev adds the tools of `make tidy` and `make format`
set -euo pipefail
export LC_ALL=C  # comm and sort agree on one order

# purpose | Debian 12 packages | elsewhere: requirement and version
groups=(
  "compiler and build|build-essential g++ cmake ninja-build ccache pkg-config|g++ >= 12 or clang >= 14, CMake >= 3.25, ninja; optionally ccache"
  "tensors, gradients, kernels|libtorch-dev|libtorch >= 1.13 (Python's torch works too; without it: cmake -DMOTLEY_TORCH=OFF)"
  "fast matrix products: the reference BLAS is 40x slower|libopenblas0-pthread|OpenBLAS >= 0.3.21, unless libtorch carries its own BLAS"
  "event loop, JSON, described structs|libboost1.81-dev|Boost headers >= 1.81"
  "TLS and checksums|libssl-dev|OpenSSL >= 3.0"
  "compressed data sets|zlib1g-dev|zlib >= 1.2"
  "formatting, command line, job files|libfmt-dev libcli11-dev libtomlplusplus-dev|fmt >= 9, CLI11 >= 2.1, toml++ >= 3.3"
  "tests|libgtest-dev|GoogleTest >= 1.12 (without it: cmake -DMOTLEY_TESTS=OFF)"
  "data set of the examples|dataset-fashion-mnist|Fashion-MNIST, its four .gz files in /usr/share/datasets/fashion-mnist"
)
dev_group="make tidy and make format|clang clang-tidy clang-format|clang, clang-tidy and clang-format 14"

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$@" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
debian_12() { have apt-get && have dpkg-query && grep -qx 'ID=debian' /etc/os-release && grep -qx 'VERSION_ID="12"' /etc/os-release; }

# The packages among "$@" that are not installed, one per line.
missing_of() {
  local installed
  # dpkg-query fails when one of the names is unknown, but prints the others.
  installed=$(dpkg-query -W -f '${db:Status-Abbrev}\t${Package}\n' "$@" 2>/dev/null | sed -n 's/^[ih]i \t//p') || true
  comm -23 <(printf '%s\n' "$@" | sort -u) <(sort -u <<<"$installed")
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

install_missing() {
  local group purpose packages all=() missing=() lacking
  for group in "${groups[@]}"; do
    IFS='|' read -r _ packages _ <<<"$group"
    read -ra packages <<<"$packages"
    all+=("${packages[@]}")
  done
  mapfile -t missing < <(missing_of "${all[@]}")
  ((${#missing[@]})) || return 0

  for group in "${groups[@]}"; do
    IFS='|' read -r purpose packages _ <<<"$group"
    lacking=$(comm -12 <(tr ' ' '\n' <<<"$packages" | sort) <(printf '%s\n' "${missing[@]}") | paste -sd ' ')
    [[ -z $lacking ]] || say "installing $lacking ($purpose)"
  done
  if ((EUID != 0)) && ! have sudo; then
    fail "these packages are missing: ${missing[*]}" "installing needs root or sudo, and this is neither; as root, run" \
      "  apt-get install --no-install-recommends ${missing[*]}"
  fi
  local log
  log=$(mktemp)
  if ! { as_root apt-get update && as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --no-install-recommends "${missing[@]}"; } </dev/null >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    fail "apt could not install: ${missing[*]}" "its last output is above; check the network and /etc/apt/sources.list, then run" \
      "  apt-get update && apt-get install --no-install-recommends ${missing[*]}"
  fi
  rm -f "$log"
  say "installed ${#missing[@]} packages and their dependencies"
}

# libtorch calls the BLAS that the system's alternatives name, which may be the slow reference BLAS of an older installation.
check_blas() {
  local name path wanted
  while read -r name _ path; do
    [[ $name =~ ^lib(blas|lapack)\.so\.3- && $path != */openblas-pthread/* ]] || continue
    wanted=$(update-alternatives --list "$name" | grep /openblas-pthread/) || continue
    if [[ $path =~ /(blas|lapack)/lib ]] && ((EUID == 0)); then
      say "$name points to the reference library $path (40x slower); now to $wanted"
      update-alternatives --set "$name" "$wanted" >/dev/null
    else
      say "$name points to $path, so matrix products may be slow; for OpenBLAS run: update-alternatives --set $name $wanted"
    fi
  done < <(update-alternatives --get-selections)
}

# On other systems: lists all requirements, then checks those that every build needs.
explain() {
  local group purpose elsewhere lacking=() version
  say "packages are installed on Debian 12 only; on this system, please install:"
  for group in "${groups[@]}"; do
    IFS='|' read -r purpose _ elsewhere <<<"$group"
    say "  $elsewhere - for $purpose"
  done
  have c++ || have g++ || have clang++ || lacking+=("a C++20 compiler (g++ >= 12 or clang >= 14)")
  have ninja || have ninja-build || lacking+=("ninja")
  version=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p') || true
  if [[ -z $version ]]; then
    lacking+=("CMake >= 3.25 (found none)")
  elif [[ $(printf '%s\n' 3.25 "$version" | sort -V | head -n 1) != 3.25 ]]; then
    lacking+=("CMake >= 3.25 (found $version)")
  fi
  if ((${#lacking[@]})); then
    fail "cannot build, missing:" "${lacking[@]/#/  }" "install them so that they are in PATH, then run make again"
  fi
  say "compiler, CMake $version and ninja are present; CMake names each library that it does not find"
}

case "${1-}" in
  "") ;;
  --dev) groups+=("$dev_group") ;;
  *) fail "unknown argument '$1'" "usage: scripts/setup.sh [--dev]" ;;
esac
if debian_12; then
  install_missing
  check_blas
else
  explain
fi
