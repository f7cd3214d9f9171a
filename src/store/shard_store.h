// The numbers of one server: the values of its slices, their optimizer state, their version. Knows no worker, no message, no codec:
// who contributes, how heavily and when was decided before it is called.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "store/layout.h"
#include "store/optimizer.h"

namespace motley::store {

enum class UpdateKind : std::uint8_t {
  gradient,  // parameters: g = sum weight*part, then the optimizer's rule; statistics: s += sum weight*part
  delta      // everything: w += sum weight*part
};

struct Update {
  UpdateKind kind{};
  double rate{};      // gradient only
  double momentum{};  // gradient only
  double share = 1;   // gradient only: of a global batch, see Optimizer
};

/// One contribution. `flat` covers the whole flat buffer; a server reads its own slices of it.
struct WeightedPart {
  std::span<const float> flat;
  double weight{};
};

/// What a server needs beside the values to go on where one has stopped. `first` and `second` cover the whole flat buffer like the values;
/// `second` is empty for sgd.
struct Moments {
  std::vector<float> first;
  std::vector<float> second;
  std::uint64_t updates = 0;  // that the optimizer has made
  double rate = 0;            // of the last one
};

/// Any number of servers over the same layout leaves the same bits: each value goes through one fixed order of float operations
/// (w0*p0, then + w1*p1, ...; weights rounded to float once). Spans named `flat` have layout.values floats; only this server's slices
/// of them are read or written. One owner thread; no locks.
class ShardStore {
 public:
  ShardStore(const Layout& layout, ServerId server, const OptimizerSpec& spec, std::span<const float> initial_flat);

  /// Version n becomes n+1. At least one part. Parts are summed in the order given.
  /// Cost: one pass over the parts and the state; the sum stays in cache.
  void apply(const Update& update, std::span<const WeightedPart> parts);

  /// Parameters looking ahead, w - rho*rate*v with the rate of the last gradient update, and statistics as they are.
  void snapshot(double rho, std::span<float> flat_out) const;

  /// Parameters and statistics as they are.
  void values(std::span<float> flat_out) const;

  [[nodiscard]] Version version() const { return version_; }

  /// This server's slices of the optimizer's state, into `out`, whose spans are made large enough; the rest of them stays as it is.
  void moments(Moments& out) const;
  /// Goes on as `version` with this state; the values are those of the constructor.
  void restore(const Moments& moments, Version version);

 private:
  /// Neighbouring slices of one kind, as one stretch of the flat buffer and of values_.
  struct Run {
    std::size_t flat{};   // where it begins in the flat buffer
    std::size_t local{};  // where it begins in values_
    std::size_t count{};
    SliceKind kind{};
  };

  static std::vector<Run> runs_of(const Layout& layout, ServerId server);
  static std::size_t parameters_in(std::span<const Run> runs);
  void apply(const Update& update, std::span<const WeightedPart> parts, const Run& run);
  void copy_out(const Run& run, std::span<float> flat_out) const;

  std::size_t flat_values_;
  std::vector<Run> runs_;  // parameters first, so that parameter i of values_ is value i of the optimizer
  std::vector<float> values_;
  Optimizer optimizer_;
  double rate_ = 0;  // of the last gradient update
  Version version_{};
};

}  // namespace motley::store
