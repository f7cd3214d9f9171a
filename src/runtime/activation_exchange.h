// The exchange of a stage with one neighbour, for one assignment. With the stage after it: outputs are sent, gradients received. With the
// stage before it: gradients are sent, outputs received. Each micro-batch is sent in slices, so that the first is in flight while the next
// is copied.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/activation.h"
#include "runtime/peer_connection.h"
#include "wire/permissions.h"
#include "wire/pipeline_messages.h"

namespace motley::runtime {

enum class Neighbour : std::uint8_t { before, after };

struct ActivationExchangeOptions {
  Neighbour neighbour{};
  std::uint32_t generation = 0;
  std::uint64_t first_micro = 0;   // where the assignment begins
  std::size_t most_waiting = 1;    // micro-batches that may wait here to be computed on, beside the one that is received
  std::size_t slices = 1;          // of a micro-batch, at least
  std::size_t slice_bytes = 4096;  // at most
};

class ActivationExchange {
 public:
  explicit ActivationExchange(const ActivationExchangeOptions& options) : options_(options), next_(options.first_micro) {}

  /// `peer` outlives this, or the call of disconnect().
  void connect(PeerConnection& peer) { peer_ = &peer; }
  void disconnect() { peer_ = nullptr; }
  /// Null: not connected.
  [[nodiscard]] PeerConnection* peer() const { return peer_; }

  /// Keeps an activation for send().
  void put(std::uint64_t micro, Activation activation) { made_[micro] = std::move(activation); }
  /// Without a connection it is dropped: the neighbour was lost, and another assignment follows.
  void send(std::uint64_t micro);

  /// Micro-batches arrive whole and in order, and at most as many wait here as the stages may hold. A slice of an earlier assignment is
  /// accepted, to be discarded.
  [[nodiscard]] wire::Objection objection(const PeerConnection& from, const wire::ActivationSlice& slice) const;
  /// Memory for the payload; empty: it does not fit.
  std::span<std::byte> receive_buffer(const wire::ActivationSlice& slice, std::size_t bytes);
  struct Progress {
    bool finite = true;     // all values of this slice
    bool complete = false;  // it was the last slice of its micro-batch
  };
  /// Nothing: the payload was discarded.
  std::optional<Progress> received(PeerConnection& from, const wire::ActivationSlice& slice);
  /// Micro-batches that wait here and are complete, in order.
  [[nodiscard]] std::vector<std::uint64_t> complete() const;
  /// Empty for a stage that receives nothing.
  [[nodiscard]] Activation take(std::uint64_t micro);

 private:
  struct Incoming {
    std::shared_ptr<Activation> activation;
    std::uint64_t missing = 0;  // values
  };
  [[nodiscard]] bool receives_gradients() const { return options_.neighbour == Neighbour::after; }

  ActivationExchangeOptions options_;
  PeerConnection* peer_ = nullptr;
  std::map<std::uint64_t, Activation> made_;     // by micro-batch, not sent yet
  std::map<std::uint64_t, std::uint64_t> sent_;  // values of each output whose gradient has not arrived
  std::map<std::uint64_t, Incoming> incoming_;   // by micro-batch
  std::uint64_t next_;                           // the micro-batch that is received now, or next
};

}  // namespace motley::runtime
