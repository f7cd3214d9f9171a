// The conductor's process: the conductor machine on one pump, every stage at the end of a connection. It turns the crank and holds no
// decision. What stages pass to each other never comes here; only their parts of the model do, when they hand in.
#pragma once
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/batching.h"
#include "base/result.h"
#include "cluster/spec.h"
#include "protocol/pipeline_chief.h"
#include "protocol/training_outcome.h"
#include "runtime/chief_hooks.h"
#include "runtime/clock.h"
#include "runtime/limited_log.h"
#include "runtime/model_parts.h"
#include "runtime/stage_times.h"
#include "runtime/task_thread.h"
#include "store/staged_model.h"
#include "trace/event.h"
#include "transport/acceptor.h"
#include "transport/shaped.h"
#include "wire/permissions.h"

namespace motley::runtime {

struct PipelineChiefProcessOptions {
  transport::Address listen;
  transport::Options transport;
  std::string job;  // the resolved job, handed to newcomers
  cluster::Spec cluster;
  protocol::PipelineChiefOptions pipeline_chief;
  store::StagedModel model;  // to begin with
  bool second = false;       // the optimizer has second moments
  /// Where each stage of a cut lies in the model.
  std::function<std::vector<store::StagePlace>(const pipeline::Cut&)> places;
  std::uint64_t samples = 0;                   // of a mini-batch
  std::uint64_t total_samples = no_end;        // where the last mini-batch is smaller
  std::uint64_t evaluate_every = 1;            // mini-batches
  std::uint64_t checkpoint_every = 0;          // mini-batches; 0: only when interrupted
  Duration trained_before{};                   // by the runs that this one goes on from
  Duration start_deadline = from_seconds(30);  // those who came first wait no longer for the others
  Duration empty_deadline = from_seconds(60);  // standing still for so long: give up
  Duration join_deadline = from_seconds(120);  // a connection that is no node yet is closed when it is silent for longer
};

/// A model that was kept whole, and what it took to get there.
struct KeptModel {
  store::StagedModel model;
  std::uint64_t mini_batches = 0;
  Duration trained{};
};

/// As with a chief: `evaluate` and `save` are called on a thread of their own, the others on the pump thread.
struct PipelineChiefHooks {
  std::function<Result<EvaluationResult>(std::span<const float> values)> evaluate;
  std::function<Outcome(const KeptModel&)> save;
  std::function<void()> saving;
  std::function<void(const Outcome&)> saved;
  std::function<void(const std::string&)> log;
  std::function<void(const trace::Event&)> on_event;
};

class PipelineChiefProcess final : private transport::AcceptCallbacks, private transport::ConnectionCallbacks {
 public:
  PipelineChiefProcess(boost::asio::io_context& event_loop, PipelineChiefProcessOptions options, PipelineChiefHooks hooks);
  ~PipelineChiefProcess() override;
  PipelineChiefProcess(const PipelineChiefProcess&) = delete;
  PipelineChiefProcess& operator=(const PipelineChiefProcess&) = delete;

  /// Opens the door, then run the pump; `over` is called once, when training has ended and everybody has been told.
  Outcome start(std::function<void(Result<protocol::TrainingOutcome>)> over);
  /// Saves what was kept last and ends.
  void interrupt();

  [[nodiscard]] const transport::Address& address() const { return acceptor_->address(); }
  /// Takes connections, as from its listener.
  [[nodiscard]] transport::AcceptCallbacks& accept_callbacks() { return *this; }
  [[nodiscard]] const store::StagedModel& model() const { return options_.model; }
  [[nodiscard]] const std::vector<double>& peak_stash_bytes() const { return peak_stash_bytes_; }

 private:
  struct Link {
    std::unique_ptr<transport::Shaped> connection;
    std::optional<std::uint32_t> device;  // once it is aboard
    std::string address;
    Instant last_heard{};
    wire::Sender is = wire::Sender::unidentified;
    std::string name;              // as it said, once it did
    std::uint32_t peer_lost = 0;   // the generation of which it said so
    std::uint32_t assignment = 0;  // the same
    bool sent_away = false;
  };

  void accepted(std::unique_ptr<transport::Connection> connection) override;
  void refused(const std::string& address, const std::string& reason) override;
  void on_message(transport::Connection& from, wire::Message message) override;
  std::span<std::byte> receive_buffer(transport::Connection& from, const wire::Message& head, std::size_t bytes) override;
  void received(transport::Connection& from, const wire::Message& head) override;
  void sent(transport::Connection& to, std::uint64_t ticket) override;
  void closed(transport::Connection& connection, const Error& why) override;

  /// Whether a message may be listened to: of this node, for the stage that it is, in its order. What does not pass closes the connection.
  [[nodiscard]] wire::Objection objection(const Link& link, wire::Lane lane, const wire::Message& message) const;
  [[nodiscard]] wire::Objection objection_to_node(const Link& link, const wire::StageHello& reported) const;
  [[nodiscard]] wire::Objection objection_to_stage(const Link& link, std::uint32_t generation, std::uint32_t stage) const;
  [[nodiscard]] wire::Objection objection_to_progress(const wire::Committed& reported) const;
  [[nodiscard]] wire::Objection objection_to_slice(const wire::StageSlice& slice) const;
  void expel(Link& link, const std::string& why);
  void expel_silent_pending(Instant now);
  void registered(Link& link, const wire::StageHello& reported);
  void committed(const wire::Committed& reported);
  void peer_lost(Link& link, const wire::PeerLost& reported);
  void note_driver_alive();
  void status(std::uint32_t device, const wire::StageStatus& reported);
  void expelled(const protocol::StageExpelled& who);
  void no_progress(const protocol::NoProgress& stuck);
  void send_part(Link& link, std::uint32_t generation);
  void retire(std::unique_ptr<transport::Shaped> connection);
  void take_whole(std::uint64_t mini_batches);
  void diverged(const std::string& what);
  void evaluate(std::uint64_t mini_batches);
  void save();

  void tell(const protocol::PipelineChiefEvent& event);
  void carry_out(const protocol::PipelineChiefAction& action);
  void assign_stages(const protocol::AssignStages& assignment);
  void tick();
  void end_for(protocol::EndReason why);
  void finish_when_done();
  void end(Result<protocol::TrainingOutcome> how);
  [[nodiscard]] Link* link_of_device(std::uint32_t device);
  [[nodiscard]] const Link* link_of_device(std::uint32_t device) const;
  [[nodiscard]] Duration trained() const;
  /// Of the first so many mini-batches.
  [[nodiscard]] std::uint64_t samples_of(std::uint64_t minis) const { return std::min(minis * options_.samples, options_.total_samples); }
  void record_trace(trace::Event event);
  void flush_until(Instant when);

  boost::asio::io_context& event_loop_;
  PipelineChiefProcessOptions options_;
  PipelineChiefHooks hooks_;
  Clock clock_;
  bool slices_moved_ = false;       // since a stage told how far it is
  Instant last_driven_{};           // somebody was heard, or the ticker looked, last
  std::optional<Instant> started_;  // of the first stages
  protocol::PipelineChief pipeline_chief_;
  std::unique_ptr<transport::Acceptor> acceptor_;
  std::map<const transport::Connection*, Link> links_;
  pipeline::Cut cut_;
  std::vector<store::StagePlace> places_;  // by stage
  std::uint32_t generation_ = 0;
  std::uint32_t micro_batches_ = 1;       // of a mini-batch, in this layout
  std::uint64_t allowed_ = 0;             // mini-batches of this generation
  std::vector<std::uint64_t> committed_;  // by stage
  std::vector<std::uint64_t> keys_;       // of each pair of neighbours, by the first of them
  ModelParts models_;                     // that stages hand in
  /// Where the slice that is under way on a connection lands: written until it is here or the connection is destroyed.
  struct ReceiveBuffer {
    ModelParts::ReceiveBuffer part{};
    std::vector<std::byte> discarded_bytes{};  // where it lands when nobody wants it
  };
  std::map<const transport::Connection*, ReceiveBuffer> landing_buffers_;
  /// Parts under way to stages, by connection and ticket: read until sent or the connection is destroyed.
  std::map<const transport::Connection*, std::map<std::uint64_t, std::shared_ptr<const store::StagePart>>> leaving_;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t saved_ = 0;  // mini-batches
  /// Until every stage has told what came before. Bounded: a stage tells of mini-batches that are allowed, at times after they were.
  std::multimap<Instant, trace::Event> recorded_later_;
  StageTimes times_;
  std::vector<double> peak_stash_bytes_;
  std::uint64_t done_ = 0;  // mini-batches that all have committed
  Instant done_at_{};
  std::uint64_t again_ = 0;  // that had to be done again
  std::size_t evaluating_ = 0;
  LimitedLog untrusted_log_;  // what they can cause as often as they like
  boost::asio::steady_timer ticker_;
  boost::asio::steady_timer shutdown_timer_;
  std::optional<Instant> blocked_since_;
  std::uint32_t peer_losses_ = 0;  // since somebody committed something
  std::optional<protocol::EndReason> outcome_;
  Instant outcome_at_{};
  bool ended_ = false;
  std::function<void(Result<protocol::TrainingOutcome>)> over_;
  std::vector<std::unique_ptr<transport::Shaped>> retired_;
  std::shared_ptr<bool> alive_;
  TaskThread background_thread_;  // evaluates and saves; last: ends first
};

}  // namespace motley::runtime
