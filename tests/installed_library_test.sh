#!/bin/sh
# usage: installed_library_test.sh BUILD SOURCE VERSION
# Installs the library of a build folder into a temporary folder, builds examples/cpp/linear against it with find_package and with the flags
# of pkg-config, and trains with several strategies and with a worker that joins from another process.
set -eu
build=$1 source=$2 version=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "$*" >&2; exit 1; }

cmake --install "$build" --component library --prefix "$folder/usr" > "$folder/install.log" || { cat "$folder/install.log"; fail "install failed"; }
library=$(find "$folder/usr" -name libmotley.so)
[ -n "$library" ] || fail "found no libmotley.so below the prefix"
if readelf -d "$library" | grep -E 'NEEDED.*(torch|c10)'; then fail "libmotley.so needs torch; expected a library without it"; fi

# Every public header by itself, without the repository in the include path.
for header in "$folder"/usr/include/motley/*.h; do
  echo "#include <motley/$(basename "$header")>" > "$folder/one.cpp"
  c++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$folder/usr/include" "$folder/one.cpp" || fail "$header is not self-contained"
done

cp -r "$source/examples/cpp/linear" "$folder/linear"
cmake -S "$folder/linear" -B "$folder/linear/build" -DCMAKE_PREFIX_PATH="$folder/usr" > "$folder/configure.log" ||
  { cat "$folder/configure.log"; fail "find_package(Motley) failed"; }
cmake --build "$folder/linear/build" > "$folder/build.log" || { cat "$folder/build.log"; fail "the example does not compile"; }
linear=$folder/linear/build/linear
for strategy in bsp hps local-sgd:steps=4; do
  "$linear" "$folder/linear/linear.toml" --strategy "$strategy" || fail "$strategy: found exit code $?, expected the target accuracy"
done

# A chief with one worker of its own; a second process joins it.
socket=$folder/chief
"$linear" "$folder/linear/linear.toml" --listen "unix:$socket" --local-workers 3 &
chief=$!
"$linear" --join "unix:$socket" --node slow 2> "$folder/joined.log" || { cat "$folder/joined.log"; fail "the worker that joined failed"; }
wait "$chief" || fail "the chief: found exit code $?, expected the target accuracy"

PKG_CONFIG_PATH=$(dirname "$(find "$folder/usr" -name motley.pc)")
export PKG_CONFIG_PATH
[ "$(pkg-config --modversion motley)" = "$version" ] || fail "pkg-config: found version $(pkg-config --modversion motley), expected $version"
# shellcheck disable=SC2046
c++ -o "$folder/linear/by-flags" "$folder/linear/main.cpp" $(pkg-config --cflags --libs motley) || fail "pkg-config: the example does not compile"
LD_LIBRARY_PATH=$(dirname "$library") "$folder/linear/by-flags" "$folder/linear/linear.toml" || fail "pkg-config: the example does not train"
