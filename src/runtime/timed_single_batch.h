// One batch for a device that is slow in small pieces: as many samples as fit into the time limit, judged by earlier steps.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>

#include "cluster/known_batch_sizes.h"
#include "runtime/computation.h"
#include "store/replica.h"

namespace motley::runtime {

/// Computing thread only.
class TimedSingleBatch final : public store::MicroBatcher {
 public:
  /// `chosen`: called with the size of the batch.
  TimedSingleBatch(const cluster::KnownBatchSizes& sizes, std::uint32_t batch_multiple, Computation& computation,
                   std::function<void(std::uint64_t)> chosen)
      : sizes_(sizes), batch_multiple_(batch_multiple), computation_(computation), chosen_(std::move(chosen)) {}

  Piece next(std::uint64_t done, std::uint64_t left) override {
    const Piece piece{sizes_.largest_fitting(left, computation_.order.limit, batch_multiple_, done), true};
    computation_.samples = done + piece.samples;
    chosen_(piece.samples);
    return piece;
  }

 private:
  const cluster::KnownBatchSizes& sizes_;
  std::uint32_t batch_multiple_;
  Computation& computation_;
  std::function<void(std::uint64_t)> chosen_;
};

}  // namespace motley::runtime
