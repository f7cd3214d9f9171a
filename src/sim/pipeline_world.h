// A simulated pipeline: the state machines of the stages and of the pipeline chief, driven by an event queue in virtual time over modelled
// devices and links. Like sim/world.h it holds no decision; equal options and seed give the same trace.
//
// Outputs and gradients pass through sim/pipeline_channels.h. A device computes one part at a time, for its blocks' time
// (pipeline::Problem), with its node's jitter and slow periods. The pipeline chief (protocol/pipeline_chief.h) places the stages, cuts the
// model anew and resumes after a loss; messages to it and from it take no time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "base/batching.h"
#include "cluster/device.h"
#include "cluster/spec.h"
#include "pipeline/problem.h"
#include "pipeline/schedule.h"
#include "protocol/pipeline_chief.h"
#include "protocol/stage.h"
#include "sim/event_queue.h"
#include "sim/pipeline_channels.h"
#include "sim/stage_memory.h"
#include "trace/event.h"

namespace motley::sim {

/// The numbers behind the parts. Called in order of virtual time, when a part ends.
class PipelineNumbers {
 public:
  virtual ~PipelineNumbers() = default;
  /// A forward begins on the newest parameters, or, when it is `late`, on those predicted by momentum.
  virtual void begun(std::uint32_t stage, std::uint64_t micro, std::uint32_t late) = 0;
  virtual void done(std::uint32_t stage, pipeline::Part part, std::uint64_t micro) = 0;
  virtual void committed(std::uint32_t stage, std::uint64_t mini) = 0;
  /// Keep this stage's part of the model, as it is after so many mini-batches.
  virtual void submit_state(std::uint32_t stage, std::uint64_t mini_batches) = 0;
  struct Evaluation {
    bool made = false;
    double accuracy = 0;
    double loss = 0;
  };
  /// Every stage has submitted its part after so many mini-batches; the evaluation of that model, if it was `made`.
  virtual Evaluation kept(std::uint64_t mini_batches) = 0;
  /// A new layout begins with the model kept after `from` mini-batches; no micro-batch is in flight.
  virtual void assign_stages(const pipeline::Cut& cut, const pipeline::Schedule& schedule, std::uint64_t from) = 0;
  /// A loss was not finite.
  [[nodiscard]] virtual bool diverged() const = 0;
};

/// For simulations of times and versions only.
class NoPipelineNumbers final : public PipelineNumbers {
 public:
  void begun(std::uint32_t, std::uint64_t, std::uint32_t) override {}
  void done(std::uint32_t, pipeline::Part, std::uint64_t) override {}
  void committed(std::uint32_t, std::uint64_t) override {}
  void submit_state(std::uint32_t, std::uint64_t) override {}
  Evaluation kept(std::uint64_t) override { return {}; }
  void assign_stages(const pipeline::Cut&, const pipeline::Schedule&, std::uint64_t) override {}
  [[nodiscard]] bool diverged() const override { return false; }
};

struct PipelineWorldOptions {
  cluster::Spec cluster;  // devices of the problem are its nodes
  pipeline::Problem problem;
  pipeline::Cut cut;
  std::function<pipeline::Schedule(const pipeline::Problem&, const pipeline::Cut&)> reschedule;
  std::function<std::optional<pipeline::Cut>(const pipeline::Problem&)> repartition;  // see protocol::PipelineChiefOptions
  std::uint64_t snapshot_every = 50;                                                  // mini-batches
  std::uint64_t mini_batches = 0;
  std::uint64_t samples = 0;             // of a mini-batch
  std::uint64_t total_samples = no_end;  // when the last mini-batch is smaller; its micro-batches are timed like whole ones
  std::uint32_t slices = 4;              // of each output and gradient, see sim/pipeline_channels.h
  std::uint64_t seed = 0;
};

struct PipelineOutcome {
  std::uint64_t mini_batches = 0;  // committed by every stage
  std::uint64_t again = 0;         // mini-batches that were repeated after a loss
  bool diverged = false;
  bool not_enough_devices = false;  // the remaining devices cannot hold the model
  Instant ended{};
  std::uint64_t bytes = 0;               // sent between stages
  std::vector<double> peak_kept_bytes;   // by stage: activations
  std::vector<double> peak_stash_bytes;  // by stage: activations and stashed parameters
};

class PipelineWorld {
 public:
  /// Keeps references to `numbers` and `trace`.
  PipelineWorld(PipelineWorldOptions options, PipelineNumbers& numbers, trace::Sink& trace);
  /// Simulates until every stage has committed every mini-batch. To be called once.
  PipelineOutcome run();

 private:
  struct PartEnds {
    std::uint32_t generation;
    std::uint32_t stage;
    pipeline::Part part;
    std::uint64_t micro;
  };
  struct OutputArrives {  // at `stage`
    std::uint32_t generation;
    std::uint32_t stage;
    std::uint64_t micro;
  };
  struct GradientArrives {
    std::uint32_t generation;
    std::uint32_t stage;
    std::uint64_t micro;
  };
  struct SliceThrough {  // a channel
    std::uint32_t generation;
    std::size_t channel;
  };
  struct ModelLoaded {  // on the stages of this generation
    std::uint32_t generation;
    std::uint64_t allowed;
  };
  struct FaultDue {
    std::size_t fault;
  };
  struct StagesReport {
    std::uint32_t generation;
  };
  struct DeviceMoves {  // after it hung
    std::uint32_t device;
  };
  using Event = std::variant<PartEnds, OutputArrives, GradientArrives, SliceThrough, ModelLoaded, FaultDue, StagesReport, DeviceMoves>;

  [[nodiscard]] bool is_outdated(const Event& event) const;
  void stages_report();

  void tell(const protocol::PipelineChiefEvent& event);
  void carry_out(const protocol::PipelineChiefAction& action);
  void assign_stages(const protocol::AssignStages& assignment);
  void make_stages(std::uint64_t from);
  [[nodiscard]] double loading_s(const pipeline::Cut& before, const pipeline::Cut& after, protocol::AssignReason why) const;
  void inject_fault(const cluster::Fault& fault);
  void tell(std::uint32_t stage, const protocol::StageEvent& event);
  void carry_out(std::uint32_t stage, const protocol::StageAction& action);
  void begin(std::uint32_t stage, const protocol::RunPart& part);
  void ended(const PartEnds& part);
  void commit(std::uint32_t stage, std::uint64_t mini);
  void submit_state(std::uint32_t stage);
  void ship(std::size_t channel, std::uint64_t micro, double bytes);
  void through(std::size_t channel);
  void update_peaks(std::uint32_t stage);
  void record(const trace::EventData& event) { trace_.on_event({now_, event}); }
  /// In the first `minis` mini-batches.
  [[nodiscard]] std::uint64_t samples_of(std::uint64_t minis) const { return std::min(minis * options_.samples, options_.total_samples); }

  PipelineWorldOptions options_;
  PipelineNumbers& numbers_;
  trace::Sink& trace_;
  EventQueue<Event> queue_;
  Instant now_{};
  std::vector<protocol::Stage> stages_;
  std::vector<cluster::Device> devices_;  // by node
  std::set<std::uint32_t> away_;          // devices that were killed or have left
  std::vector<StageMemory> memory_;       // by stage
  PipelineOutcome outcome_;
  protocol::PipelineChief pipeline_chief_;
  PipelineChannels channels_;
  pipeline::Cut cut_;  // empty without a layout
  pipeline::Schedule schedule_;
  std::uint32_t generation_ = 0;
  std::uint64_t allowed_ = 0;
  bool all_submit_state_ = false;               // when they have committed what is allowed
  std::vector<std::uint64_t> state_submitted_;  // by stage, the last
  struct Timing {
    std::vector<double> part_s;  // by part
    double busy_s = 0;           // since the last commit
    std::uint64_t micros = 0;    // done since the last commit
    Instant since{};             // begin of the running part
    std::uint64_t parts = 0;     // done in this generation
    bool busy = false;
  };
  std::vector<Timing> timing_;  // by stage
};

}  // namespace motley::sim
