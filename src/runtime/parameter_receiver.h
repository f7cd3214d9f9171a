// The parameters that a worker receives, step by step: into which memory each slice goes, whether it is read in the server's memory, and
// the decoding of changes. Slices of several steps may be incomplete at once.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "runtime/incoming_parameters.h"
#include "runtime/peer_connection.h"
#include "store/layout.h"
#include "wire/message.h"
#include "wire/permissions.h"

namespace motley::runtime {

struct ParameterReceiverOptions {
  bool keeps_values = false;   // the device decodes: slices stay encoded here (StepExecutor::keeps_values())
  bool bf16_transfer = false;  // the device computes with bf16 weights: slices rounded to bf16 are accepted
};

/// Event-loop thread only.
class ParameterReceiver {
 public:
  /// `layout` outlives this.
  ParameterReceiver(const store::Layout& layout, ParameterReceiverOptions options) : layout_(layout), options_(options) {}

  /// Slices for other members are discarded from now on.
  void receive_for(WorkerId member) { member_ = member; }
  [[nodiscard]] std::optional<WorkerId> member() const { return member_; }

  /// Why this slice must not be received; none: it may.
  [[nodiscard]] wire::Objection objection(ServerId from, const wire::Pulled& pulled) const;
  /// Memory for the payload; empty: its size or its encoding is wrong.
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Pulled& pulled, std::size_t bytes);
  /// The payload is complete. The parameters that it belongs to; null: it was discarded. An error: they cannot be decoded.
  Result<std::shared_ptr<IncomingParameters>> received(PeerConnection& from, const wire::Pulled& pulled);
  /// Reads the payload where it lies. Null: it has to be copied, through receive_buffer() and received().
  std::shared_ptr<IncomingParameters> accept_in_place(const wire::Pulled& pulled, std::span<const std::byte> payload,
                                                      const transport::BorrowedMemory& borrow);

  /// Null: no slice of them has been received, or they were dropped.
  [[nodiscard]] std::shared_ptr<IncomingParameters> find(WorkerId worker, Step step) const;
  /// Drops older ones. The last one before stays until this one is complete, as slices may be changes of it.
  void drop_before(WorkerId worker, Step step);

 private:
  using Key = std::pair<WorkerId, Step>;
  [[nodiscard]] bool is_expected_bf16(const wire::Pulled& pulled) const;
  [[nodiscard]] std::uint8_t bits_of(const wire::Pulled& pulled) const { return layout_[pulled.slice].bits(pulled.bits); }
  [[nodiscard]] std::shared_ptr<IncomingParameters> previous(const Key& key) const;
  [[nodiscard]] Outcome apply_change(const wire::Pulled& pulled, std::span<const std::byte> bytes) const;
  [[nodiscard]] Outcome mark_arrived(const wire::Pulled& pulled, IncomingParameters& incoming) const;

  const store::Layout& layout_;
  ParameterReceiverOptions options_;
  std::optional<WorkerId> member_;
  std::map<Key, std::shared_ptr<IncomingParameters>> incoming_;
};

}  // namespace motley::runtime
