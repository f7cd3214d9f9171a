// The numbers of one server: the values of its slices, their optimizer state, their version, and what it has sent to whom as far as that
// may still be needed. Knows no message: who contributes, how heavily and when was decided before it is called.
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
  /// gradient, apart: lambda. A part g whose base is kept counts as g + clip(lambda*g*g*(w - base), |g|): an estimate of what g would be at
  /// the values of now (delay compensation, Zheng et al. 2017). 0: as it is.
  double compensation = 0;
};

/// One contribution. `flat` covers the whole flat buffer; a server reads its own slices of it.
struct WeightedPart {
  std::span<const float> flat;
  double weight{};
  PullId base{};  // what it was computed on
  std::vector<bool>
      bf16_transfer{};  // by slice: whether its values are numbers of 16 bits, from where its floats would begin; empty: none is
};

/// How parameters are written for others: looking ahead, w - rho*rate*v with the rate of the last gradient update, and statistics as they
/// are. With `bf16_transfer`, slices that may travel in 16 bits a value are rounded to that, and lie from where their floats would begin.
struct SnapshotFormat {
  SnapshotFormat(double rho_ = 0, bool bf16_transfer_ = false)
      : rho(rho_), bf16_transfer(bf16_transfer_) {}  // NOLINT(google-explicit-constructor): rho says it all
  double rho;
  bool bf16_transfer;
  auto operator<=>(const SnapshotFormat&) const = default;
};

/// What a server needs beside the values to go on where one has stopped. `first` and `second` cover the whole flat buffer like the values;
/// `second` is empty for sgd.
struct Moments {
  std::vector<float> first;
  std::vector<float> second;
  std::uint64_t updates = 0;  // that the optimizer has made
  double rate = 0;            // of the last one
};

/// What a store computes with.
struct ExecutionContext {
  std::shared_ptr<ThreadPool> pool = std::make_shared<ThreadPool>(1);
  Target target = widest_target();
};

/// Any number of servers over the same layout, threads and targets leaves the same bits: each value goes through one fixed order of float
/// operations (w0*p0, then + w1*p1, ...; weights rounded to float once). Spans named `flat` have layout.values floats; only this server's
/// slices of them are read or written. One owner thread, which has the team work on pieces that do not overlap; no locks.
class ShardStore {
 public:
  ShardStore(const Layout& layout, ServerId server, const OptimizerSpec& spec, std::span<const float> initial_flat,
             ExecutionContext context = {});

  /// Version n becomes n+1. At least one part. Parts are summed in the order given.
  /// Cost: one pass over the parts and the state; the sum stays in registers.
  void apply(const Update& wanted, std::span<const WeightedPart> parts) {
    apply(wanted, parts, {}, {}, [](std::span<const SliceId>) {});
  }
  /// Hears of slices that are done while others are not.
  using OnSlicesDone = std::function<void(std::span<const SliceId>)>;
  /// And what snapshot(outlook) would write after it, while each piece is at hand; empty: nothing. What is needed first is done first.
  void apply(const Update& wanted, std::span<const WeightedPart> parts, const SnapshotFormat& format, std::span<float> snapshot,
             const OnSlicesDone& on_slices_done);

  /// An update is expected, though not certain: whatever was expected before is forgotten. Until commit() nothing that others see changes.
  /// Not for updates apart or compensated ones. `snapshot` is what snapshot(outlook) would write after it; valid until the next
  /// begin_speculation().
  void begin_speculation(const Update& expected, const SnapshotFormat& format, std::span<float> snapshot);
  /// These slices of the expected parts are there: what the update makes of them is made now, beside what counts.
  void speculate(std::span<const WeightedPart> parts, std::span<const SliceId> slices);
  /// What was expected has come: as apply(), for what is left of it.
  void commit(std::span<const WeightedPart> parts) {
    commit(parts, [](std::span<const SliceId>) {});
  }
  void commit(std::span<const WeightedPart> parts, const OnSlicesDone& on_slices_done);

  void snapshot(const SnapshotFormat& format, std::span<float> flat_out) const;

  /// Parameters and statistics as they are.
  void values(std::span<float> flat_out) const;

  /// Remembers what was sent, w - rho*rate*v as it is now, for compensation; see WeightStash. One pass for the first at a version.
  void keep(const PullId& sent, double rho);
  void forget(WorkerId worker) { weight_stash_.forget(worker); }
  [[nodiscard]] std::size_t bytes_kept() const { return weight_stash_.bytes(); }

  /// Inner product of this server's slices of a contribution with the optimizer's first moment: above 0 it goes the way the model goes.
  /// Summed piece by piece, so that the number of threads changes nothing.
  [[nodiscard]] double alignment(const WeightedPart& part) const;
  [[nodiscard]] double alignment(std::span<const float> flat) const { return alignment(WeightedPart{flat, 1}); }

  [[nodiscard]] Version version() const { return version_; }

  /// This server's slices of the optimizer's state, into `out`, whose spans are made large enough; the rest of them stays as it is.
  void moments(Moments& out) const;
  /// Goes on as `version` with this state; the values are those of the constructor.
  void restore(const Moments& moments, Version version);

 private:
  /// A slice of this server or a piece of one: a stretch of the flat buffer and of values_.
  struct Run {
    std::size_t flat{};   // where it begins in the flat buffer
    std::size_t local{};  // where it begins in values_
    std::size_t count{};
    TensorKind kind{};
    SliceId id;
    std::size_t within{};      // of its slice: where it begins
    bool may_be_bf16 = false;  // its slice may travel in 16 bits a value

    /// From value `first` of it on, `most` values or as many as there are.
    [[nodiscard]] Run piece(std::size_t first, std::size_t most) const;
    /// Where its values begin, as numbers of 16 bits, in a flat buffer.
    [[nodiscard]] const std::uint16_t* bf16_transfer(std::span<const float> all) const;
  };

  static std::vector<Run> slices_of(const Layout& layout, ServerId server);
  static std::size_t parameters_in(std::span<const Run> slices);
  /// The team calls work(piece, run) for stretches of slices_ that cover every value once, those of one piece in order on one thread.
  template <class Work>
  void by_pieces(Work work) const;
  /// work(piece of a slice) for all of these, a few slices after the other, the pieces of each few side by side.
  template <class Work>
  void by_slices(std::span<const std::size_t> slices, Work work, const OnSlicesDone& on_slices_done) const;
  [[nodiscard]] std::size_t pieces() const { return (values_.size() + piece_values - 1) / piece_values; }
  [[nodiscard]] std::vector<Addend> addends_of(const Update& update, std::span<const WeightedPart> parts, const Run& run) const;
  void apply(const Update& update, std::span<const WeightedPart> parts, const Run& run, std::span<float> values,
             Optimizer& optimizer) const;
  void speculate(std::span<const WeightedPart> parts, const Run& run);
  void speculate(std::span<const WeightedPart> parts, const Run& run, std::span<float> out);
  void snapshot(const Run& run, const SnapshotFormat& format, std::span<float> flat_out) const;
  /// Calls write(run, out) for all of `run`, or for pieces of it, and sees to it that what they write to `out` comes to its place in
  /// `flat_out`.
  template <class Write>
  void write_out(const Run& run, bool bf16_transfer, std::span<float> flat_out, Write write) const;
  void copy_out(const Run& run, std::span<float> flat_out) const;

  ExecutionContext context_;
  const Kernels* kernels_;
  std::size_t flat_values_;
  std::vector<Run> slices_;  // ascending, so parameters first: parameter i of values_ is value i of the optimizer
  codec::Bf16 bf16_codec_;
  Floats values_;
  Optimizer optimizer_;
  OptimizerSpec spec_;
  double rate_ = 0;  // of the last gradient update
  WeightStash weight_stash_;
  Version version_{};

  std::vector<std::size_t> by_priority_;  // of slices_: what is needed first comes first
  /// The state after the expected update, as far as it is known.
  struct Speculation {
    Floats values;
    Optimizer optimizer;
    Update update;
    SnapshotFormat format{};
    std::span<float> snapshot{};
    std::vector<bool> speculated{};  // by slice
  };
  std::optional<Speculation> speculation_;  // its memory stays once it was needed
};

}  // namespace motley::store
