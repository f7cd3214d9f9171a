// A simulated pipeline: the real stage machines, driven by a virtual clock over modelled devices and links. Like sim/world.h it turns the
// crank and holds no decision; same options and seed, same trace.
//
// Between neighbours there is a way forth and a way back, each first-in-first-out, each at its bandwidth and latency; neighbours in
// different groups share their groups' uplinks with whoever else crosses them. A device does one part at a time, with its node's jitter and
// slow spells. What a part takes is its blocks' time (plan::Problem) on that device. Where the schedule says so the world looks now and
// then whether another cut would be better (plan/replan.h); then nothing new is begun, and when every stage has committed the same
// mini-batch the blocks move and all begin again from there.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "cluster/device.h"
#include "cluster/spec.h"
#include "plan/pipeline.h"
#include "plan/replan.h"
#include "plan/schedule.h"
#include "protocol/stage.h"
#include "sim/event_queue.h"
#include "trace/event.h"

namespace motley::sim {

/// What the parts stand for. Called in the order of virtual time, when a part ends.
class PipelineNumbers {
 public:
  virtual ~PipelineNumbers() = default;
  /// A forward is about to begin: its parameters are those of now, or where momentum will have led when it is `late`.
  virtual void begun(std::uint32_t stage, std::uint64_t micro, std::uint32_t late) = 0;
  virtual void done(std::uint32_t stage, plan::Part part, std::uint64_t micro) = 0;
  virtual void committed(std::uint32_t stage, std::uint64_t mini) = 0;
  /// From now on the model is cut like this; nothing is under way.
  virtual void recut(const plan::Cut& cut) = 0;
  /// Every stage has committed this mini-batch: whether to tell an evaluation now, and which.
  struct Evaluation {
    bool made = false;
    double accuracy = 0;
    double loss = 0;
    bool diverged = false;  // a loss was not finite: there is no use in going on
  };
  virtual Evaluation finished(std::uint64_t mini) = 0;
};

/// Time and versions alone.
class NoPipelineNumbers final : public PipelineNumbers {
 public:
  void begun(std::uint32_t, std::uint64_t, std::uint32_t) override {}
  void done(std::uint32_t, plan::Part, std::uint64_t) override {}
  void committed(std::uint32_t, std::uint64_t) override {}
  void recut(const plan::Cut&) override {}
  Evaluation finished(std::uint64_t) override { return {}; }
};

struct PipelineWorldOptions {
  cluster::Spec cluster;  // devices of the problem are its nodes
  plan::Problem problem;
  plan::Cut cut;
  plan::Schedule schedule;
  /// The same schedule for another cut, by what is known of the devices then. Needed where the schedule looks for one.
  std::function<plan::Schedule(const plan::Problem&, const plan::Cut&)> reschedule{};
  std::uint64_t mini_batches = 0;
  std::uint64_t samples = 0;  // of a mini-batch
  std::uint64_t seed = 0;
};

struct PipelineEnding {
  std::uint64_t mini_batches = 0;  // committed everywhere
  bool diverged = false;
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
  PipelineEnding run();

 private:
  struct PartEnds {
    std::uint32_t stage;
    plan::Part part;
    std::uint64_t micro;
  };
  struct OutputArrives {  // at `stage`
    std::uint32_t stage;
    std::uint64_t micro;
  };
  struct GradientArrives {
    std::uint32_t stage;
    std::uint64_t micro;
  };
  struct BlocksMoved {};  // to where the new cut has them
  using What = std::variant<PartEnds, OutputArrives, GradientArrives, BlocksMoved>;

  void make_stages(std::uint64_t first_mini);
  void start();
  void look(std::uint64_t mini);
  void allow_more(std::uint64_t finished);
  void recut();
  void tell(std::uint32_t stage, const protocol::StageEvent& event);
  void carry_out(std::uint32_t stage, const protocol::StageAction& action);
  void begin(std::uint32_t stage, const protocol::RunPart& part);
  void commit(std::uint32_t stage, std::uint64_t mini);
  [[nodiscard]] Instant travel(std::uint32_t from_stage, std::uint32_t to_stage, double bytes);
  void weigh(std::uint32_t stage);
  void report(trace::Event event);

  PipelineWorldOptions options_;
  PipelineNumbers& numbers_;
  trace::Sink& trace_;
  EventQueue<What> queue_;
  Instant now_{};
  std::vector<protocol::Stage> stages_;
  std::vector<cluster::Device> devices_;     // by node
  std::vector<std::vector<double>> part_s_;  // [stage][part]
  std::vector<double> kept_bytes_;           // by stage, of a micro-batch
  std::vector<double> parameter_bytes_;      // by stage
  std::vector<Instant> forth_, back_;        // [stage]: when its way to the next, and from it, is free
  std::vector<Instant> group_up_, group_down_;
  /// Which parameters a forward used: after so many updates, and whether they were where momentum would lead from there.
  struct Used {
    std::uint64_t committed = 0;
    bool predicted = false;
    auto operator<=>(const Used&) const = default;
  };
  std::vector<std::map<std::uint64_t, Used>> versions_;  // [stage]: of each micro-batch kept
  PipelineEnding ending_;
  std::uint64_t allowed_ = 0;              // mini-batches that may be begun
  std::optional<plan::Replanned> wanted_;  // a cut that waits until nothing is under way
  plan::Problem believed_;                 // with device speeds as far as they were measured
  struct Measured {
    double busy_s = 0;
    std::uint64_t micros = 0;
    Instant since{};  // the part that runs now
  };
  std::vector<Measured> measured_;  // by stage, since the last look
};

}  // namespace motley::sim
