#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "app/bench.h"
#include "app/stopwatch.h"
#include "store/shard_store.h"

namespace motley::app {
namespace {

constexpr std::size_t values = 16U << 20;  // 64 MiB of floats: beyond every cache

/// Best of five: the machine's other work only ever slows a run down.
double best_seconds(const std::function<void()>& work) {
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    const Stopwatch watch;
    work();
    best = std::min(best, watch.seconds());
  }
  return best;
}

}  // namespace

boost::json::object bench_store() {
  std::vector<float> a(values, 1.0F);
  std::vector<float> b(values, 2.0F);
  std::vector<float> c(values, 0.5F);
  const double bytes = static_cast<double>(values) * sizeof(float);

  const double copy = best_seconds([&] { std::memcpy(a.data(), b.data(), values * sizeof(float)); });
  const double triad = best_seconds([&] {
    for (std::size_t i = 0; i < values; ++i) a[i] = b[i] + 0.9F * c[i];
  });

  const store::TensorPlace all{0, values, store::SliceKind::parameter};
  store::ShardStore shard(store::cut({&all, 1}, 1U << 20, 1), ServerId{0}, {}, a);
  const store::Update update{store::UpdateKind::gradient, 0.01, 0.9};
  const std::vector<store::WeightedPart> one{{b, 1.0}};
  const std::vector<store::WeightedPart> four{{b, 0.25}, {c, 0.25}, {b, 0.25}, {c, 0.25}};
  const double apply_one = best_seconds([&] { shard.apply(update, one); });
  const double apply_four = best_seconds([&] { shard.apply(update, four); });
  const double pull = best_seconds([&] { shard.snapshot(0.9, a); });

  // Traffic: memcpy reads and writes once; a triad reads twice and writes once; SGD reads g, w, v and writes w, v; a look-ahead reads w, v,
  // writes one.
  const double triad_rate = 3 * bytes / triad;
  const double apply_rate = 5 * bytes / apply_one;
  return {{"memcpy_bytes_per_second", 2 * bytes / copy},
          {"triad_bytes_per_second", triad_rate},
          {"apply_sgd_bytes_per_second", apply_rate},
          {"apply_sgd_ratio_to_triad", apply_rate / triad_rate},
          {"apply_sgd_4_parts_bytes_per_second", 8 * bytes / apply_four},
          {"snapshot_bytes_per_second", 3 * bytes / pull},
          {"apply_sgd_values_per_second", static_cast<double>(values) / apply_one}};
}

}  // namespace motley::app
