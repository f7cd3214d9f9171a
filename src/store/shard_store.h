// One server's parameters: the values of its slices, their optimizer state and version, and the parameters that workers still compute on.
// Knows no messages: which contributions form an update, and their weights, are arguments.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/processor.h"
#include "base/update_kind.h"
#include "codec/bf16.h"
#include "store/floats.h"
#include "store/layout.h"
#include "store/optimizer.h"
#include "store/thread_pool.h"
#include "store/weight_stash.h"

namespace motley::store {

using motley::UpdateKind;

struct Update {
  UpdateKind kind{};
  double rate{};      // gradient only
  double momentum{};  // gradient only
  double share = 1;   // gradient only: of a global batch, see Optimizer
  /// gradient and bypass_momentum: lambda. A part g whose base is stashed counts as g + clip(lambda*g*g*(w - base), |g|), an estimate of g
  /// at the current values w (delay compensation, Zheng et al. 2017). 0: no compensation.
  double compensation = 0;
};

/// One contribution. `flat` covers the whole flat buffer; a server reads its own slices of it.
struct WeightedPart {
  std::span<const float> flat;
  double weight{};
  PullId base{};                      // names the parameters it was computed on
  std::vector<bool> bf16_transfer{};  // by slice: whether it holds bf16 values, from where its floats would begin; empty: none does
};

/// How snapshots are written: parameters looked ahead, w - rho*rate*v with the rate of the last gradient update, and statistics unchanged.
/// With `bf16_transfer`, slices that allow it are rounded to bf16 and stored from where their floats would begin.
struct SnapshotFormat {
  SnapshotFormat(double rho_ = 0, bool bf16_transfer_ = false)
      : rho(rho_), bf16_transfer(bf16_transfer_) {}  // NOLINT(google-explicit-constructor): a look-ahead alone is a format
  double rho;
  bool bf16_transfer;
  auto operator<=>(const SnapshotFormat&) const = default;
};

/// The optimizer state that a server needs beside the values to continue training. `first` and `second` cover the whole flat buffer like
/// the values; `second` is empty for sgd.
struct Moments {
  std::vector<float> first;
  std::vector<float> second;
  std::uint64_t updates = 0;  // made by the optimizer
  double rate = 0;            // learning rate of the last one
};

/// The threads and instructions that a store computes with.
struct ExecutionContext {
  std::shared_ptr<ThreadPool> pool = std::make_shared<ThreadPool>(1);
  Target target = widest_target();
};

/// The number of servers, threads and the target change no bit of the result: each value goes through one fixed order of float operations
/// (w0*p0, then + w1*p1, ...; weights rounded to float once). Spans named `flat` have layout.values floats; only this server's slices of
/// them are read or written. One owner thread, which has the pool work on pieces that do not overlap; no locks.
class ShardStore {
 public:
  ShardStore(const Layout& layout, ServerId server, const OptimizerSpec& spec, std::span<const float> initial_flat,
             ExecutionContext context = {});

  /// Version n becomes n+1. At least one part. Parts are summed in the order given.
  /// Cost: one pass over the parts and the state; the sum stays in registers.
  void apply(const Update& wanted, std::span<const WeightedPart> parts) {
    apply(wanted, parts, {}, {}, [](std::span<const SliceId>) {});
  }
  /// Called on the owner thread with slices that are done, before later ones are.
  using OnSlicesDone = std::function<void(std::span<const SliceId>)>;
  /// Also writes to `snapshot` what snapshot(format) would write afterwards, while each piece is in the cache; an empty span: nothing.
  /// Slices are updated in order of priority.
  void apply(const Update& wanted, std::span<const WeightedPart> parts, const SnapshotFormat& format, std::span<float> snapshot,
             const OnSlicesDone& on_slices_done);

  /// Begins to compute an update that may come, beside the current values; an earlier speculation is dropped. Nothing visible changes until
  /// commit(). Not for compensated updates or bypass_momentum. `snapshot` receives what snapshot(format) would write after the update; it
  /// must stay valid until the next begin_speculation().
  void begin_speculation(const Update& expected, const SnapshotFormat& format, std::span<float> snapshot);
  /// Computes these slices of the expected update; all `parts` must have them.
  void speculate(std::span<const WeightedPart> parts, std::span<const SliceId> slices);
  /// The expected update has come: as apply(), but only the slices that were not speculated are computed.
  void commit(std::span<const WeightedPart> parts) {
    commit(parts, [](std::span<const SliceId>) {});
  }
  void commit(std::span<const WeightedPart> parts, const OnSlicesDone& on_slices_done);

  void snapshot(const SnapshotFormat& format, std::span<float> flat_out) const;

  /// Parameters and statistics, without look-ahead.
  void values(std::span<float> flat_out) const;

  /// Stashes the parameters that were sent, w - rho*rate*v as of now, for compensation; see WeightStash. Costs one pass for the first call
  /// at a version.
  void keep(const PullId& sent, double rho);
  void forget(WorkerId worker) { weight_stash_.forget(worker); }
  [[nodiscard]] std::size_t bytes_kept() const { return weight_stash_.bytes(); }

  /// Inner product of this server's slices of a contribution with the optimizer's first moment: above 0 if it points the way the model
  /// moves. Summed piece by piece, so that the number of threads changes no bit.
  [[nodiscard]] double alignment(const WeightedPart& part) const;
  [[nodiscard]] double alignment(std::span<const float> flat) const { return alignment(WeightedPart{flat, 1}); }

  [[nodiscard]] Version version() const { return version_; }

  /// Writes this server's slices of the optimizer state to `out`, whose vectors are resized if needed; other slices of them are unchanged.
  void moments(Moments& out) const;
  /// Sets the optimizer state and the version; the values are those of the constructor.
  void restore(const Moments& moments, Version version);

 private:
  /// A slice of this server or a piece of one: a contiguous range of the flat buffer and of values_.
  struct Run {
    std::size_t flat{};   // where it begins in the flat buffer
    std::size_t local{};  // where it begins in values_
    std::size_t count{};
    TensorKind kind{};
    SliceId id;
    std::size_t within{};      // of its slice: where it begins
    bool may_be_bf16 = false;  // its slice may be sent as bf16

    /// At most `most` of its values from value `first` on.
    [[nodiscard]] Run piece(std::size_t first, std::size_t most) const;
    /// Where its values begin in a flat buffer that holds them as bf16.
    [[nodiscard]] const std::uint16_t* bf16_transfer(std::span<const float> all) const;
  };

  static std::vector<Run> slices_of(const Layout& layout, ServerId server);
  static std::size_t parameters_in(std::span<const Run> slices);
  /// Calls work(piece, run) in parallel for ranges that cover every value once, those of one piece in order on one thread.
  template <class Work>
  void for_each_piece(Work work) const;
  /// Calls work(run) for pieces that cover these slices, in batches of consecutive slices: the pieces of a batch in parallel.
  template <class Work>
  void for_each_slice(std::span<const std::size_t> slices, Work work, const OnSlicesDone& on_slices_done) const;
  [[nodiscard]] std::size_t pieces() const { return (values_.size() + piece_values - 1) / piece_values; }
  [[nodiscard]] std::vector<Addend> addends_of(const Update& update, std::span<const WeightedPart> parts, const Run& run) const;
  void apply(const Update& update, std::span<const WeightedPart> parts, const Run& run, std::span<float> values,
             Optimizer& optimizer) const;
  void speculate(std::span<const WeightedPart> parts, const Run& run);
  void speculate(std::span<const WeightedPart> parts, const Run& run, std::span<float> out);
  void snapshot(const Run& run, const SnapshotFormat& format, std::span<float> flat_out) const;
  /// Calls write(run, out) for all of `run` or for pieces of it; the floats written to `out` are stored in `flat_out`, as bf16 if the
  /// format and the slice say so.
  template <class Write>
  void write_out(const Run& run, bool bf16_transfer, std::span<float> flat_out, Write write) const;
  void copy_out(const Run& run, std::span<float> flat_out) const;

  ExecutionContext context_;
  const Kernels* kernels_;
  std::size_t flat_values_;
  std::vector<Run> slices_;  // ascending, parameters first: parameter i of values_ is value i of the optimizer
  codec::Bf16 bf16_codec_;
  Floats values_;
  Optimizer optimizer_;
  OptimizerSpec spec_;
  double rate_ = 0;  // of the last gradient update
  WeightStash weight_stash_;
  Version version_{};

  std::vector<std::size_t> by_priority_;  // indices of slices_, the most urgent first
  /// The state after the expected update, as far as it is computed.
  struct Speculation {
    Floats values;
    Optimizer optimizer;
    Update update;
    SnapshotFormat format{};
    std::span<float> snapshot{};
    std::vector<bool> speculated{};  // by slice
  };
  std::optional<Speculation> speculation_;  // its memory is kept for the next one
};

}  // namespace motley::store
