// The process of a pipeline's chief: drives the pipeline chief machine on one event loop, with a connection to every stage. It takes no
// decision about the training. Activations go between the stages; only their parts of the model come here.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/batching.h"
#include "base/result.h"
#include "cluster/spec.h"
#include "protocol/pipeline_chief.h"
#include "protocol/training_outcome.h"
#include "runtime/alarm.h"
#include "runtime/clock.h"
#include "runtime/disconnection_watch.h"
#include "runtime/expulsions.h"
#include "runtime/kept_models.h"
#include "runtime/pause_detector.h"
#include "runtime/peer_listener.h"
#include "runtime/periodic_timer.h"
#include "runtime/pipeline_chief_trace.h"
#include "runtime/pipeline_layout.h"
#include "runtime/stage_peers.h"
#include "store/staged_model.h"

namespace motley::runtime {

struct PipelineChiefProcessOptions {
  transport::Address listen;
  transport::Options transport;
  std::string job;  // the resolved job, for pending nodes
  cluster::Spec cluster;
  protocol::PipelineChiefOptions pipeline_chief;
  store::StagedModel model;  // the initial model
  bool second = false;       // the optimizer has second moments
  /// Where each stage of a cut lies in the model.
  std::function<std::vector<store::StagePlace>(const pipeline::Cut&)> places;
  std::uint64_t samples = 0;                   // of a mini-batch
  std::uint64_t total_samples = no_end;        // where the last mini-batch is smaller
  std::uint64_t evaluate_every = 1;            // mini-batches
  std::uint64_t checkpoint_every = 0;          // mini-batches; 0: only when interrupted
  Duration trained_before{};                   // by the runs that this one continues
  Duration start_deadline = from_seconds(30);  // then training starts with the nodes that are there
  Duration empty_deadline = from_seconds(60);  // training ends when so long too few nodes were there
  Duration join_deadline = from_seconds(120);  // a pending connection that sends nothing for so long is closed
};

/// Event-loop thread only; the models that it keeps have a thread of their own.
class PipelineChiefProcess final : private PeerOwner, private KeptModelsOwner {
 public:
  PipelineChiefProcess(boost::asio::io_context& event_loop, PipelineChiefProcessOptions options, PipelineChiefHooks hooks);
  ~PipelineChiefProcess() override = default;
  PipelineChiefProcess(const PipelineChiefProcess&) = delete;
  PipelineChiefProcess& operator=(const PipelineChiefProcess&) = delete;

  /// Listens; then run the event loop. `over` is called once, when training has ended and all stages were told.
  Outcome start(std::function<void(Result<protocol::TrainingOutcome>)> over);
  /// Saves the model that was kept last and ends.
  void interrupt();

  [[nodiscard]] const transport::Address& address() const { return listener_.address(); }
  /// Takes connections as from its listener.
  [[nodiscard]] transport::AcceptCallbacks& accept_callbacks() { return listener_.callbacks(); }
  [[nodiscard]] const store::StagedModel& model() const { return models_.model(); }
  [[nodiscard]] const std::vector<double>& peak_stash_bytes() const { return trace_.peak_stash_bytes(); }

 private:
  [[nodiscard]] wire::Objection objection(const PeerConnection& from, wire::Lane lane, const wire::Message& message) const override;
  void expel(PeerConnection& peer, const std::string& why) override;
  void on_message(PeerConnection& from, wire::Message message) override;
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Message& head, std::size_t bytes) override;
  void received(PeerConnection& from, const wire::Message& head) override;
  void sent(PeerConnection&, std::uint64_t) override { slices_moved_ = true; }
  void closed(PeerConnection& connection, const Error& why) override;

  [[nodiscard]] Instant trained() const override { return trace_.trained(clock_.now()); }
  void saving() override { trace_.write_committed(); }
  void evaluated(const trace::Event& event) override { trace_.write(event); }
  void evaluation_failed(const Error& why) override { end(why); }
  void diverged(const std::string& what) override;
  void models_advanced() override { finish_when_done(); }

  void joined(StagePeer& peer, const wire::StageHello& reported);
  void committed(const wire::Committed& reported);
  void peer_lost(StagePeer& peer, const wire::PeerLost& reported);
  void status(std::uint32_t device, const wire::StageStatus& reported);
  void send_part(StagePeer& peer, std::uint32_t generation);

  void tick();
  void close_silent();
  void note_driver_alive();
  void tell(const protocol::PipelineChiefEvent& event);
  void carry_out(const protocol::PipelineChiefAction& action);
  void assign_stages(const protocol::AssignStages& assignment);
  void allow_more(const protocol::AllowMore& more);
  void not_enough_devices();
  void expelled(const protocol::StageExpelled& stage);
  void no_progress(const protocol::NoProgress& stuck);
  void end_for(protocol::EndReason why);
  void finish_when_done();
  void end(Result<protocol::TrainingOutcome> how);
  [[nodiscard]] const std::string& node_name(std::uint32_t device) const { return options_.cluster.nodes[device].name; }

  PipelineChiefProcessOptions options_;
  PipelineChiefHooks hooks_;
  Clock clock_;
  PauseDetector pauses_;
  protocol::PipelineChief pipeline_chief_;
  PipelineLayout layout_;
  PipelineChiefTrace trace_;
  Expulsions expulsions_;
  StagePeers peers_;
  PeerListener listener_;
  PeriodicTimer ticker_;
  Alarm shutdown_;
  DisconnectionWatch disconnections_;
  bool slices_moved_ = false;                         // of any part of the model, since a stage reported its progress
  std::optional<Instant> blocked_since_;              // too few nodes are there
  std::optional<protocol::TrainingOutcome> outcome_;  // once training has ended; complete when ended_
  bool ended_ = false;
  std::function<void(Result<protocol::TrainingOutcome>)> over_;
  KeptModels models_;  // last: its thread ends first
};

}  // namespace motley::runtime
