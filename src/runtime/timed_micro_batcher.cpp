#include "runtime/timed_micro_batcher.h"

#include <algorithm>

namespace motley::runtime {

store::MicroBatcher::Piece TimedMicroBatcher::next(std::uint64_t done, std::uint64_t left) {
  const wire::Order& order = computation_.order;
  Piece piece{left, true};
  if (order.limit > Duration{0}) {
    const Duration spent = Time::now() - since_ - stream_.waited();
    const std::uint64_t micro = std::max<std::uint64_t>(order.micro, 1);
    if (done == 0) {
      piece.samples = std::min(left, std::max(micro, (done + left) / 2));
      piece.last = piece.samples == left;
    } else {
      const double each = seconds(spent) / static_cast<double>(done);
      const double fitting = seconds(order.limit - spent) / each;  // samples
      piece.samples = std::min(left, micro);
      // The last one if another after it would end further from the limit than this one.
      piece.last = fitting < 1.5 * static_cast<double>(micro) || piece.samples == left;
    }
  }
  if (piece.last) computation_.samples = done + piece.samples;
  return piece;
}

}  // namespace motley::runtime
