// Receives the part of the model that a stage begins with: values and moments of its optimizer, from the chief, in slices.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/peer_connection.h"
#include "store/staged_model.h"
#include "wire/pipeline_messages.h"

namespace motley::runtime {

class StagePartReceiver {
 public:
  /// `kinds`: 1: values; 2: and first moments; 3: and second moments. `updates`: those in the part.
  StagePartReceiver(const store::StagePlace& place, std::uint32_t kinds, std::uint64_t updates);

  /// Slices of each kind are sent in order.
  [[nodiscard]] bool is_next(const wire::StageSlice& slice) const { return received_[index(slice)] == slice.offset; }
  /// Memory for the payload; empty: it does not fit.
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::StageSlice& slice, std::size_t bytes);
  /// The payload is complete. One of an earlier receiver is ignored.
  void received(PeerConnection& from, const wire::StageSlice& slice);
  [[nodiscard]] bool is_complete() const { return missing_ == 0; }
  [[nodiscard]] std::shared_ptr<store::StagePart> part() const { return part_; }

 private:
  [[nodiscard]] static std::size_t index(const wire::StageSlice& slice) { return static_cast<std::size_t>(slice.state_kind); }

  std::shared_ptr<store::StagePart> part_;
  std::uint64_t missing_;                    // values
  std::array<std::uint64_t, 3> received_{};  // values, by wire::StateKind
};

}  // namespace motley::runtime
