// A server's half of a process: the shard machine on the pump thread, its numbers on a thread of their own, slices in and out.
// Slices arrive straight in the buffer that is summed and leave straight from the snapshot. Knows no strategy and no chief, only whom to
// tell.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/bits.h"
#include "codec/codec.h"
#include "protocol/shard.h"
#include "runtime/buffer.h"
#include "runtime/speculative_update.h"
#include "runtime/task_thread.h"
#include "store/layout.h"
#include "store/pull_shadow.h"
#include "store/shard_store.h"
#include "transport/transport.h"

namespace motley::runtime {

/// What a server begins with: the initial model, or a checkpoint.
struct InitialState {
  std::vector<float> values;  // flat, the whole model
  std::optional<store::Moments> moments;
  Version version;
};

/// A server's parameters of one version, and its optimizer's state if that was asked for. Only its own slices are filled.
struct Exported {
  Version version;
  SharedBuffer values;
  std::optional<store::Moments> moments;
};

/// Whom a shard host speaks to. Called on the pump thread.
class ShardOwner {
 public:
  virtual ~ShardOwner() = default;
  virtual void to_chief(const wire::Message& message) = 0;
  virtual void exported(const std::shared_ptr<Exported>& what) = 0;  // the owner's from now on
};

/// Pump thread only; its store thread is inside, and the team that the store thread works with.
class ShardHost {
 public:
  /// `threads`: of the team; 0: as many as help here. Whatever their number, the same bits come out.
  ShardHost(boost::asio::io_context& event_loop, ServerId server, const store::Layout& layout, const OptimizerSpec& optimizer,
            const InitialState& initial_state, ShardOwner& owner, std::size_t threads = 0);
  ~ShardHost();
  ShardHost(const ShardHost&) = delete;
  ShardHost& operator=(const ShardHost&) = delete;

  /// From the chief, in order.
  void receive(const wire::Message& message);
  /// Why a message of a chief elsewhere must not be heard; none: it may.
  [[nodiscard]] wire::Objection objection(const wire::Message& message) const;
  /// Why there is no room for this slice from this peer, whatever its size; none: there may be.
  [[nodiscard]] wire::Objection objection(const transport::Connection& from, const wire::Push& push) const;

  /// What is sent to this member goes through that connection; what waited for it goes now.
  void attach(WorkerId worker, transport::Connection& connection);
  [[nodiscard]] bool is_attached(const transport::Connection& connection) const;
  /// The connection is gone: nothing more goes through it.
  void detach(const transport::Connection& connection);

  /// As of transport::ConnectionCallbacks, for slices of contributions.
  /// Only who is attached may push for a member, each slice once; who was forgotten pushes into the void. A slice counts when every value
  /// of it was looked at (base/finite.h): what was copied here at once, what is read where it lies by the team.
  std::span<std::byte> receive_buffer(const transport::Connection& from, const wire::Push& push, std::size_t bytes);
  void received(const transport::Connection& from, const wire::Push& push);
  /// As of transport::ConnectionCallbacks: a contribution that lies flat in the pusher's memory is summed there.
  bool accept_in_place(const transport::Connection& from, const wire::Push& push, std::span<const std::byte> payload,
                       const transport::BorrowedMemory& borrow);
  void sent(std::uint64_t ticket);

  [[nodiscard]] std::uint64_t bytes_pushed() const { return bytes_pushed_; }
  [[nodiscard]] std::uint64_t bytes_pulled() const { return bytes_pulled_; }

 private:
  /// What workers compute on: all slices of this server at one version and one look-ahead, encoded.
  struct Snapshot {
    SharedBuffer flat;                                // the values themselves: sent as they are
    bool bf16_transfer = false;                       // in `flat`, of slices for which 16 bits a value will do
    std::map<SliceId, std::vector<std::byte>> coded;  // changes
    std::vector<bool> done;                           // by slice, while it is being written; empty: all are
    [[nodiscard]] bool has(SliceId slice) const { return done.empty() || done[slice.value]; }
    [[nodiscard]] std::span<const std::byte> payload(const store::Layout& layout, SliceId slice) const;
  };
  using SharedSnapshot = std::shared_ptr<Snapshot>;  // the pump's; the store thread writes to what is not done
  struct SnapshotKey {
    Version version;
    store::SnapshotFormat format{};
    std::uint8_t bits = 32;      // ordered
    std::uint32_t pull_class{};  // when bits are fewer than 32
    bool whole = true;           // the values that the class holds, not the change
    auto operator<=>(const SnapshotKey&) const = default;
  };
  struct Pull {  // ordered by the machine, not yet handed to the transport
    SnapshotKey key;
    std::vector<wire::Pulled> slices;
    SharedSnapshot snapshot;  // null: being made
  };
  /// Where a slice that is under way lands. It stays until the slice is here or its connection gone, whatever is forgotten meanwhile.
  struct ReceiveBuffer {
    SharedBuffer flat;             // of its contribution; null: of somebody forgotten
    std::vector<std::byte> bytes;  // when it is not to land in `flat` itself: encoded, or for nobody
  };
  /// A slice that is here and not decoded yet.
  struct Coded {
    SharedBuffer flat;  // of its contribution: where it goes
    store::Slice slice;
    std::uint8_t bits{};
    std::vector<std::byte> bytes;
  };
  /// What is here of a contribution, at least one slice.
  struct Contribution {
    std::uint64_t number{};  // tells it from an earlier one that was freed
    SharedBuffer flat;
    std::vector<bool> here;           // by slice
    std::vector<bool> bf16_transfer;  // by slice: its values are numbers of 16 bits
    std::vector<SliceId> kept;        // of the slices that are here, while `flat` is borrowed
    std::size_t counted = 0;          // slices that the machine has heard of
    bool finite = true;               // as far as they were looked at
  };
  /// A slice that is read where it lies and was not looked at yet.
  struct Unseen {
    wire::Push push;
    std::uint64_t number{};  // of its contribution
    std::uint8_t bits{};
    std::span<const std::byte> payload;
    transport::BorrowedMemory borrow;
  };
  [[nodiscard]] bool may_push(const transport::Connection& from, WorkerId worker) const;
  SharedBuffer own(const std::pair<WorkerId, Step>& contribution);
  Contribution& begun(const wire::Push& push, const SharedBuffer& flat);
  [[nodiscard]] bool is_here(const wire::Push& push) const;
  void look_at_waiting();
  void looked_at(const wire::Push& push, std::uint64_t number, bool finite);
  void drop_parts_of(WorkerId worker);
  void drop_pulls_of_many(WorkerId worker);
  [[nodiscard]] bool as_it_comes(const wire::Push& push) const;
  using ContributionKey = std::pair<WorkerId, Step>;

  void carry_out(const protocol::ShardAction& action);
  void commit(const wire::Apply& update);
  void start_commit();
  [[nodiscard]] SharedSnapshot begin_snapshot(const store::SnapshotFormat& format) const;
  void slices_done(const SharedSnapshot& snapshot, std::vector<SliceId> slices);
  [[nodiscard]] static std::vector<store::WeightedPart> weighted(const std::vector<wire::Part>& parts,
                                                                 const std::vector<Contribution>& contributions);
  void speculate(const wire::Apply& update);
  void speculate_slice(const wire::Push& push);
  void speculate_waiting();
  void compare(const protocol::Compare& which);
  void decode(Coded coded);
  void decode_waiting();
  void remember(const protocol::Snapshot& plain);
  [[nodiscard]] store::SnapshotFormat awaited_after(const wire::Apply& update) const;
  [[nodiscard]] SnapshotKey key_of(const protocol::Snapshot& wanted, Version version) const;
  void make_snapshot(const protocol::Snapshot& wanted, const SnapshotKey& key);
  void snapshot_ready(const SnapshotKey& key, const SharedSnapshot& snapshot);
  void export_now(const protocol::ExportNow& wanted);
  void send_ready(WorkerId worker);

  boost::asio::io_context& event_loop_;
  store::Layout layout_;
  ServerId server_;
  std::vector<SliceId> slices_;
  ShardOwner& owner_;
  protocol::Shard machine_;
  std::map<int, std::unique_ptr<codec::Codec>> codecs_;  // of the pump, for sizes and decoding
  std::map<ContributionKey, Contribution> contributions_;
  std::uint64_t next_contribution_ = 0;
  std::map<const transport::Connection*, ReceiveBuffer> landing_buffers_;  // slices come one at a time on each
  SpeculativeUpdate speculative_update_;
  double last_rho_ = 0;  // of the last plain snapshot
  struct SpeculatedSnapshot {
    SnapshotKey key;
    SharedSnapshot snapshot;
  };
  /// An update that the store thread does not know of yet: what comes right after it tells which snapshot to make on the way.
  struct Committing {
    wire::Apply update;
    std::vector<Contribution> parts;
    bool speculated = false;
  };
  std::optional<Committing> committing_;
  std::vector<SliceId> complete_;                          // of what is foreseen: here from everybody, the next to be prepared, together
  std::size_t speculating_ = 0;                            // batches of the ones before them
  std::optional<SpeculatedSnapshot> expected_;             // the snapshot that goes with what is foreseen
  std::optional<SpeculatedSnapshot> speculated_snapshot_;  // the one that went with the last update
  std::vector<Unseen> unseen_;                             // came while others were being looked at: the next to be, together
  bool looking_ = false;
  std::vector<Coded> coded_;  // came while others were being decoded: the next to be, together
  bool decoding_ = false;
  std::set<WorkerId> gone_;  // the machine has forgotten them: whatever they push goes to waste
  std::map<WorkerId, std::vector<Pull>> pulls_;
  struct Made {
    bool being_made = true;
    std::weak_ptr<Snapshot> snapshot;  // lives as long as somebody is still to be sent it
  };
  std::map<SnapshotKey, Made> snapshots_;  // of the newest version
  std::map<WorkerId, transport::Connection*> attached_;
  std::set<WorkerId> bf16_workers_;  // who was sent weights so when it was sent all of them last
  struct UnderWay {
    SharedSnapshot snapshot;
    const transport::Connection* through = nullptr;
  };
  std::map<std::uint64_t, UnderWay> under_way_;  // by ticket
  std::uint64_t next_ticket_ = 0;
  std::uint64_t bytes_pushed_ = 0;
  std::uint64_t bytes_pulled_ = 0;
  std::optional<protocol::Snapshot> snapshotting_;             // the Snapshot whose Pulled messages come next
  std::shared_ptr<bool> alive_;                                // false once this is gone: what the store thread still posts goes nowhere
  std::shared_ptr<store::ThreadPool> pool_;                    // the store thread's
  std::shared_ptr<store::ShardStore> store_;                   // the store thread's
  using Shadows = std::map<std::uint32_t, store::PullShadow>;  // by pull class
  std::shared_ptr<Shadows> shadows_;                           // the store thread's
  TaskThread store_thread_;                                    // last: ends first
};

}  // namespace motley::runtime
