// The pipeline chief: decides which device is which stage, how many mini-batches may begin, when the model is cut again, and from which
// state all stages continue when a device is lost. Events in, actions out; it sees no payload, clock or socket.
//
//   allowing   permits only as many mini-batches as can begin, so that the pipeline soon drains after permits stop
//   saving     after a fixed number of mini-batches, and after the last, each stage sends its state; a complete model is the state from
//              which all stages continue after a loss: later work is repeated and counted once
//   cutting    periodically compares the stages (pipeline/replan.h); for a better cut, or a new device, it stops permitting; when every
//              stage has committed the same mini-batch and sent its state, all stages are assigned again
//   watching   expels a stage whose device stays at one task for too long: see protocol/stage_progress.h
//   losing     assigns the remaining devices again at once; if they cannot hold the model, as soon as another device joins
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "pipeline/problem.h"
#include "pipeline/replan.h"
#include "pipeline/schedule.h"
#include "protocol/driver_paused.h"
#include "protocol/stage_progress.h"

namespace motley::protocol {

struct PipelineChiefOptions {
  pipeline::Problem problem;
  pipeline::Cut cut;  // for the devices as described; training begins when those of the cut have joined
  /// The schedule for a cut, by the present estimates of the devices.
  std::function<pipeline::Schedule(const pipeline::Problem&, const pipeline::Cut&)> reschedule;
  /// A cut for the present devices. None: they cannot hold the model.
  std::function<std::optional<pipeline::Cut>(const pipeline::Problem&)> repartition;
  std::uint64_t mini_batches = 0;
  std::uint64_t first_mini = 0;            // the first one not done yet, when a checkpoint has earlier ones
  Duration step_limit = from_seconds(30);  // see StageProgress
};

// Events of a pipeline chief. Mini-batches are counted from the beginning of training. ------------------------------------------------

struct DeviceJoined {
  std::uint32_t device;
};
struct DeviceLost {
  std::uint32_t device;
};
/// Training begins with the devices that have joined.
struct StartTimeout {};
/// A stage has committed mini-batches, and reports the time and number of micro-batches since its last report. Estimates are limited to the
/// time since the assignment and the micro-batches that were allowed.
struct StageCommitted {
  std::uint32_t generation{};
  std::uint32_t stage{};
  std::uint64_t mini_batches{};
  double busy_s = 0;
  std::uint64_t micro_batches = 0;
};
/// Every stage has sent its state after so many mini-batches: the model of that moment is complete.
struct ModelSnapshotComplete {
  std::uint64_t mini_batches;
};
/// Two neighbours have lost their connection, although both are alive.
struct StagesDisconnected {
  std::uint32_t generation;
};
/// A stage reports the progress of its device: the number of finished tasks, and whether it is busy.
struct StageReported {
  std::uint32_t generation{};
  std::uint32_t stage{};
  std::uint64_t done = 0;
  bool busy = false;
  bool slices_moved = false;  // slices of any stage were transferred to or from the chief since the last report
};
using PipelineChiefEvent = std::variant<DeviceJoined, DeviceLost, StartTimeout, StageCommitted, ModelSnapshotComplete, StagesDisconnected,
                                        StageReported, DriverPaused>;

// Actions of a pipeline chief ----------------------------------------------------------------------------------------------------------

enum class AssignReason : std::uint8_t { begins, unevenness, device_joined, loss };
/// Ends the previous generation. Each device of the cut becomes a stage, with the model as it was saved after `from`.
struct AssignStages {
  std::uint32_t generation{};
  pipeline::Cut cut;
  pipeline::Schedule schedule;
  std::uint64_t from{};
  std::uint64_t allowed{};
  AssignReason why{};
  std::vector<std::uint32_t> joined;  // stages to announce as new: never assigned before, or expelled since
};
/// To every stage of this generation. A stage that has committed `allowed` mini-batches sends its state if `submit_state`.
struct AllowMore {
  std::uint64_t allowed{};
  bool submit_state = false;
};
/// Every stage has committed so many mini-batches.
struct CommittedByAll {
  std::uint64_t mini_batches;
};
/// The remaining devices cannot hold the model; another device may change that.
struct NotEnoughDevices {};
struct PipelineDone {};
/// This device is alive but makes no progress: it counts as lost until it moves again. The others are assigned next.
struct StageExpelled {
  std::uint32_t stage{};
  std::uint32_t device{};
  Duration took{};     // so far, of one task
  Duration longest{};  // of earlier tasks; 0: it has never committed
};
/// No stage is busy and none has made progress for so long: a message was lost. All stages are assigned next.
struct NoProgress {
  Duration for_how_long{};
};
using PipelineChiefAction =
    std::variant<AssignStages, AllowMore, CommittedByAll, NotEnoughDevices, PipelineDone, StageExpelled, NoProgress>;
using PipelineChiefActions = std::vector<PipelineChiefAction>;  // carry out in order

class PipelineChief {
 public:
  explicit PipelineChief(PipelineChiefOptions options);

  /// Total: any event in any state. Appends to `out`.
  void step(Instant now, const PipelineChiefEvent& event, PipelineChiefActions& out);

  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] std::uint32_t generation() const { return generation_; }
  [[nodiscard]] std::uint64_t kept() const { return kept_; }

 private:
  [[nodiscard]] bool assigned() const { return !cut_.empty(); }
  [[nodiscard]] std::uint64_t committed_by_all() const;
  [[nodiscard]] std::optional<pipeline::Cut> cut_for_present() const;
  void came(std::uint32_t device, PipelineChiefActions& out);
  void gone(std::uint32_t device, PipelineChiefActions& out);
  void committed(Instant now, const StageCommitted& reported, PipelineChiefActions& out);
  void status(Instant now, const StageReported& reported, PipelineChiefActions& out);
  void look(std::uint64_t done, PipelineChiefActions& out);
  [[nodiscard]] bool wants_another_cut();
  void kept(std::uint64_t mini_batches, PipelineChiefActions& out);
  void assign_stages(pipeline::Cut cut, AssignReason why, PipelineChiefActions& out);
  void assign_present(AssignReason why, PipelineChiefActions& out);

  PipelineChiefOptions options_;
  pipeline::Problem estimated_;  // with measured device speeds
  std::set<std::uint32_t> present_;
  std::uint32_t generation_ = 0;
  pipeline::Cut cut_;  // empty: no stages are assigned
  pipeline::Schedule schedule_;
  std::vector<std::uint64_t> committed_;  // by stage
  struct Measured {
    double busy_s = 0;
    std::uint64_t micro_batches = 0;
  };
  [[nodiscard]] Measured plausible(Instant now, const StageCommitted& reported) const;
  Instant assigned_at_{};
  std::uint64_t assigned_from_ = 0;       // mini-batches done at the assignment
  std::vector<Measured> measured_since_;  // by stage, since the assignment
  std::vector<Measured> measured_;        // by stage, since the last comparison
  std::uint64_t allowed_ = 0;
  std::uint64_t kept_ = 0;
  std::uint64_t state_submitted_ = 0;  // saved completely, although some stages may not have reported the commit yet
  struct PendingCut {
    std::optional<pipeline::Cut> cut;  // none: computed from the devices present by then
    AssignReason why{};
  };
  std::optional<PendingCut> wanted_;  // applied when all allowed mini-batches are done
  StageProgress progress_;
  bool device_joined_ = false;
  bool finished_ = false;
  bool has_begun_ = false;             // stages were assigned
  std::set<std::uint32_t> announced_;  // stages of all assignments, without those expelled since
};

}  // namespace motley::protocol
