#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "codec/codec.h"
#include "codec/error_feedback.h"
#include "runtime/stopwatch.h"

namespace motley::bench {
namespace {

constexpr std::size_t values = 16U << 20;  // 64 MiB of floats
constexpr double float_bytes = static_cast<double>(values) * sizeof(float);
constexpr std::size_t slice_values = 1U << 14;  // 64 KiB, the default slice of a job
constexpr int rounds = 9;

struct Timed {
  std::string name;
  std::function<void()> work;
  double best_seconds = 1e30;  // the minimum, because other load of the machine only adds time
};

/// Buffers with space for the widest encoding. Every page is touched before the first measurement.
struct Memory {
  std::vector<float> from = normals();
  std::vector<float> to = std::vector<float>(values, 1.0F);
  std::vector<float> residual = std::vector<float>(values);
  codec::Bytes bytes = codec::Bytes(values * 2);
  codec::Bytes slice = codec::Bytes(slice_values * 2);

  static std::vector<float> normals() {
    std::vector<float> x(values);
    Rng rng(0, "bench codec");
    constexpr std::size_t drawn = 1U << 16;  // then repeated, because drawing takes longer than the measurements
    for (std::size_t i = 0; i < values; ++i) x[i] = i < drawn ? static_cast<float>(rng.normal()) : x[i - drawn];
    return x;
  }
};

void add_target(codec::Target target, Memory& memory, std::vector<Timed>& all) {
  const std::string prefix = target == codec::best_target() ? "" : fmt::format("{}_", codec::name_of(target));
  for (const int bits : {2, 4, 8, 16}) {
    const std::shared_ptr<const codec::Codec> codec = codec::make(bits, target).value();
    const std::span<std::byte> room = std::span(memory.bytes).first(codec->encoded_bytes(values));
    const auto add = [&](std::string_view verb, std::function<void()> work) {
      all.push_back({fmt::format("{}{}_{}_bits", prefix, verb, bits), std::move(work)});
    };
    add("encode", [&memory, codec, room] { codec->encode_into(memory.from, room); });
    add("decode", [&memory, codec, room] {  // decodes the last encoding
      const Outcome decoded = codec->decode(room, memory.to);
      check(decoded.ok(), "a codec decodes its own encoding");
    });
    add("feedback", [&memory, codec, target] {
      for (std::size_t i = 0; i < values; i += slice_values) {
        memory.slice.clear();
        codec::encode_with_feedback(*codec, std::span(memory.from).subspan(i, slice_values),
                                    std::span(memory.residual).subspan(i, slice_values), memory.slice, codec::kernels_of(target));
      }
    });
  }
}

}  // namespace

boost::json::object bench_codec() {
  Memory memory;
  std::vector<Timed> all{{"memcpy", [&memory] { std::memcpy(memory.to.data(), memory.from.data(), values * sizeof(float)); }}};
  std::vector<codec::Target> targets = codec::targets();
  std::reverse(targets.begin(), targets.end());  // the target in use comes first
  for (const codec::Target target : targets) add_target(target, memory, all);
  for (int round = 0; round < rounds; ++round)  // all in turn in every round, so that other load affects all alike
    for (Timed& one : all) {
      const runtime::Stopwatch watch;
      one.work();
      one.best_seconds = std::min(one.best_seconds, watch.seconds());
    }

  boost::json::object out{{"target", codec::name_of(codec::best_target())}};
  const double copy = all.front().best_seconds;
  for (const Timed& one : all) {
    out[one.name + "_bytes_per_second"] = float_bytes / one.best_seconds;
    if (&one != &all.front()) out[one.name + "_ratio_to_memcpy"] = copy / one.best_seconds;
  }
  return out;
}

}  // namespace motley::bench
