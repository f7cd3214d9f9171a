// A stage process for as long as one assignment holds: receives its part of the model, exchanges activations with its neighbours, and
// drives the stage machine (protocol/stage.h) with what has arrived and what is computed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>

#include "protocol/stage.h"
#include "runtime/activation_exchange.h"
#include "runtime/clock.h"
#include "runtime/commit_report.h"
#include "runtime/peer_connection.h"
#include "runtime/stage_executor.h"
#include "runtime/stage_part_receiver.h"
#include "runtime/stage_setup.h"

namespace motley::runtime {

class StageTraining {
 public:
  /// All three outlive this. `slice_bytes`: the largest payload that it sends.
  StageTraining(const wire::AssignStage& message, const StageSetup& setup, std::size_t slice_bytes, StageExecutor& executor,
                PeerConnection& chief);
  StageTraining(const StageTraining&) = delete;
  StageTraining& operator=(const StageTraining&) = delete;
  ~StageTraining() { executor_.stop(); }

  [[nodiscard]] const StageAssignment& assignment() const { return assignment_; }
  [[nodiscard]] ActivationExchange& before() { return before_; }
  [[nodiscard]] ActivationExchange& after() { return after_; }
  [[nodiscard]] const ActivationExchange& before() const { return before_; }
  [[nodiscard]] const ActivationExchange& after() const { return after_; }
  /// False: the peer is no neighbour of this assignment.
  bool disconnect(const PeerConnection& peer);
  /// Begins once its part is complete and its neighbours are connected; to be called when one of the latter was.
  void begin_if_ready();

  /// Messages of this assignment's chief and neighbours; those of an earlier assignment are accepted and ignored.
  [[nodiscard]] wire::Objection objection(const wire::Allow& allow) const;
  [[nodiscard]] wire::Objection objection(const wire::StageSlice& slice) const;
  [[nodiscard]] wire::Objection objection(const PeerConnection& from, const wire::ActivationSlice& slice) const {
    return (slice.back ? after_ : before_).objection(from, slice);
  }
  void on_message(const wire::Allow& allow);
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes);
  void received(PeerConnection& from, const wire::Message& head);

  /// As of StageExecutorOwner.
  void done(StageWork& work);
  void state_submitted(std::uint64_t mini_batches, const std::shared_ptr<const store::StagePart>& part);

 private:
  [[nodiscard]] StageConfig config(const std::shared_ptr<store::StagePart>& part) const;
  [[nodiscard]] protocol::StageOptions machine_options() const;
  void tell(const protocol::StageEvent& event);
  void tell_of_arrivals();
  void carry_out(const protocol::StageAction& action);
  void run(const protocol::RunPart& part);
  void commit(std::uint64_t mini);
  void submit_state(std::uint64_t mini_batches);
  void submit_state_if_due();

  StageAssignment assignment_;
  const StageSetup& setup_;
  std::size_t slice_bytes_;
  StageExecutor& executor_;
  PeerConnection& chief_;
  ActivationExchange before_, after_;
  /// Receives its part, then runs.
  std::variant<StagePartReceiver, protocol::Stage> phase_;
  CommitReport report_;
  std::uint64_t allowed_;             // mini-batches that may be begun
  bool submit_all_ = false;           // submit the state when all that is allowed is committed
  std::uint64_t state_submitted_;     // mini-batches in the last submitted state
  Clock clock_;                       // of training: the chief's, as of the assignment
  std::optional<Instant> continues_;  // on an emulated device: the end of the last part, where the next one begins
};

}  // namespace motley::runtime
