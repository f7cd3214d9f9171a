// A simulated pipeline: the real stage machines, driven by a virtual clock over modelled devices and links. Like sim/world.h it turns the
// crank and holds no decision; same options and seed, same trace.
//
// What stages send each other travels as sim/pipeline_channels.h says. A device does one part at a time, with its node's jitter and
// slow spells. What a part takes is its blocks' time (pipeline::Problem) on that device. Who is which stage, when the model is cut anew and
// where all go on when a device dies is the conductor's business (protocol/pipeline_chief.h); it hears and is heard at once.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
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
#include "trace/event.h"

namespace motley::sim {

/// What the parts stand for. Called in the order of virtual time, when a part ends.
class PipelineNumbers {
 public:
  virtual ~PipelineNumbers() = default;
  /// A forward is about to begin: its parameters are those of now, or where momentum will have led when it is `late`.
  virtual void begun(std::uint32_t stage, std::uint64_t micro, std::uint32_t late) = 0;
  virtual void done(std::uint32_t stage, pipeline::Part part, std::uint64_t micro) = 0;
  virtual void committed(std::uint32_t stage, std::uint64_t mini) = 0;
  /// This stage's part of the model of now, which is that after so many mini-batches, is to be kept.
  virtual void submit_state(std::uint32_t stage, std::uint64_t mini_batches) = 0;
  struct Evaluation {
    bool made = false;
    double accuracy = 0;
    double loss = 0;
  };
  /// Every stage has handed in after so many: whether to tell an evaluation of that model, and which.
  virtual Evaluation kept(std::uint64_t mini_batches) = 0;
  /// From now on the model is cut like this, and is what was kept after so many; nothing is under way.
  virtual void assign_stages(const pipeline::Cut& cut, const pipeline::Schedule& schedule, std::uint64_t from) = 0;
  /// A loss was not finite: there is no use in going on.
  [[nodiscard]] virtual bool diverged() const = 0;
};

/// Time and versions alone.
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
  std::uint64_t total_samples = no_end;  // where the last mini-batch is smaller; its micro-batches are timed like whole ones
  std::uint32_t slices = 4;              // in which an output or a gradient travels, see sim/pipeline_channels.h
  std::uint64_t seed = 0;
};

struct PipelineOutcome {
  std::uint64_t mini_batches = 0;  // committed everywhere
  std::uint64_t again = 0;         // that were done and had to be done again
  bool diverged = false;
  bool not_enough_devices = false;  // devices died, and those that are left cannot hold the model
  Instant ended{};
  std::uint64_t bytes = 0;               // that travelled
  std::vector<double> peak_kept_bytes;   // by stage: activations of micro-batches that are not done with
  std::vector<double> peak_stash_bytes;  // by stage: the same, and the parameters they were computed with beside the newest
};

class PipelineWorld {
 public:
  /// Keeps references to `numbers` and `trace`.
  PipelineWorld(PipelineWorldOptions options, PipelineNumbers& numbers, trace::Sink& trace);
  /// Turns the crank until every mini-batch is committed everywhere. Once.
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
  struct SliceThrough {  // a way
    std::uint32_t generation;
    std::size_t channel;
  };
  struct ModelLoaded {  // on the stages of this generation
    std::uint32_t generation;
    std::uint64_t allowed;
  };
  struct FaultInjected {
    std::size_t fault;
  };
  struct StagesReport {  // how far they are
    std::uint32_t generation;
  };
  struct DeviceMoves {  // that has hung
    std::uint32_t device;
  };
  using What = std::variant<PartEnds, OutputArrives, GradientArrives, SliceThrough, ModelLoaded, FaultInjected, StagesReport, DeviceMoves>;

  [[nodiscard]] bool of_the_past(const What& what) const;
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
  void weigh(std::uint32_t stage);
  void report(const trace::EventData& event);
  /// Of the first so many mini-batches.
  [[nodiscard]] std::uint64_t samples_of(std::uint64_t minis) const { return std::min(minis * options_.samples, options_.total_samples); }

  PipelineWorldOptions options_;
  PipelineNumbers& numbers_;
  trace::Sink& trace_;
  EventQueue<What> queue_;
  Instant now_{};
  std::vector<protocol::Stage> stages_;
  std::vector<cluster::Device> devices_;     // by node
  std::set<std::uint32_t> away_;             // devices that were killed or have left
  std::vector<std::vector<double>> part_s_;  // [stage][part]
  std::vector<double> kept_bytes_;           // by stage, of a micro-batch
  std::vector<double> parameter_bytes_;      // by stage
  /// Which parameters a forward used: after so many updates, and whether they were where momentum would lead from there.
  struct Used {
    std::uint64_t committed = 0;
    bool predicted = false;
    auto operator<=>(const Used&) const = default;
  };
  std::vector<std::map<std::uint64_t, Used>> versions_;  // [stage]: of each micro-batch kept
  PipelineOutcome outcome_;
  protocol::PipelineChief pipeline_chief_;
  PipelineChannels channels_;
  pipeline::Cut cut_;  // empty while nothing is laid out
  pipeline::Schedule schedule_;
  std::uint32_t generation_ = 0;
  std::uint64_t allowed_ = 0;
  bool all_submit_state_ = false;               // when they have committed what is allowed
  std::vector<std::uint64_t> state_submitted_;  // by stage, the last
  struct Measured {
    double busy_s = 0;
    std::uint64_t micros = 0;
    Instant since{};          // the part that runs now
    std::uint64_t parts = 0;  // done in this generation
    bool busy = false;
  };
  std::vector<Measured> measured_;  // by stage, since it committed last
};

}  // namespace motley::sim
