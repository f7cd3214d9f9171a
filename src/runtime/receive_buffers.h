// The gradients that workers push to a server: where each slice is received or read in place, whether its values can be applied, and the
// decoding of encoded slices. Slices are received directly in the buffer that is summed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "codec/codec.h"
#include "runtime/buffer.h"
#include "runtime/slice_decoder.h"
#include "runtime/value_checker.h"
#include "store/layout.h"
#include "transport/transport.h"

namespace motley::runtime {

using ContributionKey = std::pair<WorkerId, Step>;

/// The values of a contribution, as they are summed.
struct Contribution {
  SharedBuffer flat;
  std::vector<bool> bf16_transfer;  // by slice: its values lie in `flat` as bf16
};

/// Event-loop thread only. Which slices a peer may push at all is the caller's to decide; `discard` says that this slice belongs to a step
/// that is over: it is received and thrown away.
class ReceiveBuffers {
 public:
  /// A slice that was accepted in place has been checked: it counts from now on. From the event loop.
  using OnChecked = std::function<void(const wire::Push&)>;
  ReceiveBuffers(const store::Layout& layout, ServerId server, StoreThread& store_thread, OnChecked on_checked);

  /// As transport::ConnectionCallbacks::receive_buffer(). Empty, a refusal: a wrong size, no such codec, or a slice that is here already.
  std::span<std::byte> receive_buffer(const transport::Connection& from, const wire::Push& push, std::size_t bytes, bool discard);
  /// As transport::ConnectionCallbacks::received(). True: the slice is stored, and its values are checked.
  bool received(const transport::Connection& from, const wire::Push& push, bool discard);
  /// As transport::ConnectionCallbacks::accept_in_place(), for contributions that lie flat in the peer's memory. True: the slice is stored;
  /// on_checked() follows.
  bool accept_in_place(const wire::Push& push, std::span<const std::byte> payload, const transport::BorrowedMemory& borrow);
  /// The connection is closed: the slice that it was receiving does not come.
  void detach(const transport::Connection& connection) { receiving_.erase(&connection); }

  /// Null if no slice of it is here.
  [[nodiscard]] const Contribution* find(const ContributionKey& key) const;
  /// Whether all checked values of this contribution, which must be here, can be applied.
  [[nodiscard]] bool finite(const ContributionKey& key) const { return contributions_.at(key).finite; }
  /// Removes a contribution, which must be here, to apply it.
  Contribution take(const ContributionKey& key);
  void erase(const ContributionKey& key) { contributions_.erase(key); }
  /// Erases the contributions of this worker that have slices missing or unchecked.
  void erase_incomplete(WorkerId worker);

  /// Work that is given to the store thread after this call finds every stored slice decoded.
  void flush_decoding() { decoder_.flush(); }
  [[nodiscard]] std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  /// Where a slice in transfer is received. Kept until the slice is here or its connection closed, even if its worker is forgotten.
  struct Receiving {
    SharedBuffer flat;             // of its contribution; null: it is thrown away
    std::vector<std::byte> bytes;  // if it is not received in `flat` directly: encoded, or thrown away
  };
  /// A contribution with at least one slice here.
  struct Partial {
    std::uint64_t number{};  // tells it from an erased one with the same key
    Contribution contribution;
    std::vector<bool> here;         // by slice
    std::vector<SliceId> borrowed;  // slices that `flat` borrows from the peer
    std::size_t checked = 0;        // slices
    bool finite = true;             // of those
  };
  Partial& store_slice(const wire::Push& push, const SharedBuffer& flat);
  void checked(const ValueChecker::Slice& slice, bool finite);
  SharedBuffer writable_buffer(const ContributionKey& key);
  [[nodiscard]] bool is_here(const wire::Push& push) const;
  [[nodiscard]] std::uint8_t bits_of(const wire::Push& push) const { return layout_[push.slice].bits(push.bits); }
  [[nodiscard]] bool summed_as_received(const wire::Push& push) const;
  [[nodiscard]] const codec::Codec* codec_of(std::uint8_t bits);

  store::Layout layout_;
  std::size_t own_slices_;
  OnChecked on_checked_;
  std::map<int, std::unique_ptr<codec::Codec>> codecs_;          // by bits; for sizes and checks on the event loop
  std::map<const transport::Connection*, Receiving> receiving_;  // a connection transfers one slice at a time
  std::map<ContributionKey, Partial> contributions_;
  std::uint64_t next_number_ = 0;
  std::uint64_t bytes_received_ = 0;
  ValueChecker checker_;
  SliceDecoder decoder_;
};

}  // namespace motley::runtime
