// Rates of a server's arithmetic, compared with a stream triad over as many bytes, by the same threads and with the same instructions. (out
// = w - c*v, SGD's look-ahead, is such a triad, so one of the store's own loops serves as the limit.)
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/bench.h"
#include "runtime/stopwatch.h"
#include "store/kernels.h"
#include "store/shard_store.h"

namespace motley::bench {
namespace {

constexpr std::size_t large = 32U << 20;   // 128 MiB of floats: three such arrays exceed every cache
constexpr std::size_t small = 512U << 10;  // 2 MiB: three of them stay in the last-level cache
constexpr int rounds = 7;

/// One measured operation with its best time: other load of the machine only adds time.
struct Measurement {
  std::string name;
  double bytes;  // read and written by one run
  std::function<void()> run;
  double seconds = 1e30;
};

/// Runs every operation once per round, so that other load affects all alike.
void time(std::vector<Measurement>& measurements, std::size_t repeats) {
  for (int round = 0; round <= rounds; ++round)
    for (Measurement& measurement : measurements) {
      const runtime::Stopwatch watch;
      for (std::size_t i = 0; i < repeats; ++i) measurement.run();
      if (round > 0) measurement.seconds = std::min(measurement.seconds, watch.seconds() / static_cast<double>(repeats));  // 0 warms up
    }
}

/// Inputs of the stores, and outputs of triad and snapshots. All are disjoint: an array that is read twice would come from the cache.
struct Arrays {
  explicit Arrays(std::size_t values) : out(values, 1.0F), parts(4, store::Floats(values, 0.5F)) {}
  store::Floats out;
  std::vector<store::Floats> parts;
};

/// The stores and their thread pool.
class Bench {
 public:
  Bench(Arrays& arrays, std::size_t threads)
      : arrays_(arrays), values_(arrays.out.size()), pool_(std::make_shared<store::ThreadPool>(threads)) {
    for (const store::Floats& part : arrays.parts) four_.push_back({part, 0.25});
    const store::TensorPlace all{0, values_, TensorKind::parameter};
    const store::Layout layout = store::cut({&all, 1}, 1U << 20, 1);
    slices_ = layout.of(ServerId{0});
    four_of_16_bits_ = four_;
    for (store::WeightedPart& part : four_of_16_bits_) part.bf16_transfer.resize(slices_.size(), true);
    sgd_ = std::make_unique<store::ShardStore>(layout, ServerId{0}, OptimizerSpec{}, arrays.out, store::ExecutionContext{pool_});
    adamw_ = std::make_unique<store::ShardStore>(layout, ServerId{0}, OptimizerSpec{.kind = OptimizerKind::adamw}, arrays.out,
                                                 store::ExecutionContext{pool_});
  }

  /// Traffic in arrays: a copy reads one and writes one; a triad reads two and writes one; SGD reads g, w, v and writes w, v; AdamW one
  /// more of each; a further part is one more to read; a look-ahead reads w, v and writes one. A speculative update reads the arrays of SGD
  /// and writes w, v and the look-ahead elsewhere; a bf16 array counts half. Reads that only precede an overwrite (write-allocate) are not
  /// counted.
  void enter(std::vector<Measurement>& measurements) {
    const double array = static_cast<double>(values_) * sizeof(float);
    const std::string by = "_" + std::to_string(pool_->threads()) + (pool_->threads() == 1 ? "_thread" : "_threads");
    measurements.push_back({"memcpy" + by, 2 * array, [this] { copy(); }});
    measurements.push_back({"triad" + by, 3 * array, [this] { triad(); }});
    measurements.push_back({"apply_sgd" + by, 5 * array, [this] { sgd_->apply(update, std::span(four_).first(1)); }});
    measurements.push_back({"apply_sgd_4_parts" + by, 8 * array, [this] { sgd_->apply(update, four_); }});
    measurements.push_back({"foreseen_sgd_4_parts" + by, 9 * array, [this] { run_speculated(four_, {0.9}); }});
    measurements.push_back({"foreseen_sgd_4_parts_of_16_bits" + by, 6.5 * array, [this] {
                              run_speculated(four_of_16_bits_, {0.9, true});
                            }});
    measurements.push_back({"apply_adamw" + by, 7 * array, [this] { adamw_->apply(update, std::span(four_).first(1)); }});
    measurements.push_back({"snapshot" + by, 3 * array, [this] { sgd_->snapshot(0.9, arrays_.out); }});
  }

 private:
  static constexpr store::Update update{store::UpdateKind::gradient, 0.01, 0.9};

  void copy() {
    by_pieces([this](std::size_t first, std::size_t count) {
      std::memcpy(&arrays_.out[first], &arrays_.parts[0][first], count * sizeof(float));
    });
  }
  void triad() {
    by_pieces([this](std::size_t first, std::size_t count) {
      kernels_.sgd_look_ahead(0.9F, count, &arrays_.parts[0][first], &arrays_.parts[1][first], &arrays_.out[first]);
    });
  }
  void run_speculated(const std::vector<store::WeightedPart>& parts, const store::SnapshotFormat& format) {
    sgd_->begin_speculation(update, format, arrays_.out);
    sgd_->speculate(parts, slices_);
    sgd_->commit(parts);
  }
  template <class Work>
  void by_pieces(Work work) {
    pool_->parallel_for((values_ + store::piece_values - 1) / store::piece_values, [&](std::size_t piece) {
      const std::size_t first = piece * store::piece_values;
      work(first, std::min(store::piece_values, values_ - first));
    });
  }

  Arrays& arrays_;
  std::size_t values_;
  std::shared_ptr<store::ThreadPool> pool_;
  const store::Kernels& kernels_ = store::kernels_for(widest_target());
  std::unique_ptr<store::ShardStore> sgd_, adamw_;
  std::vector<store::WeightedPart> four_, four_of_16_bits_;
  std::vector<SliceId> slices_;
};

/// With one thread and with two.
void bench(std::size_t values, std::size_t repeats, const std::string& size, boost::json::object& figures) {
  Arrays arrays(values);
  Bench alone(arrays, 1), two(arrays, 2);
  std::vector<Measurement> measurements;
  alone.enter(measurements);
  two.enter(measurements);
  time(measurements, repeats);
  const std::size_t half = measurements.size() / 2;
  const auto speed = [&](std::size_t i) { return measurements[i].bytes / measurements[i].seconds; };
  for (std::size_t i = 0; i < measurements.size(); ++i) figures[measurements[i].name + size + "_bytes_per_second"] = speed(i);
  constexpr std::size_t triad = 1, sgd = 2;
  figures["apply_sgd_ratio_to_triad_1_thread" + size] = speed(sgd) / speed(triad);
  figures["apply_sgd_ratio_to_triad_2_threads" + size] = speed(half + sgd) / speed(half + triad);
  figures["triad_2_threads_to_1" + size] = speed(half + triad) / speed(triad);
  figures["apply_sgd_2_threads_to_1" + size] = speed(half + sgd) / speed(sgd);
}

}  // namespace

boost::json::object bench_store() {
  boost::json::object figures{{"processors", std::thread::hardware_concurrency()},
                              {"float_lanes", 4U << static_cast<unsigned>(widest_target())}};
  bench(large, 1, "", figures);
  bench(small, 50, "_in_cache", figures);
  return figures;
}

}  // namespace motley::bench
