// The conductor of a pipeline: which device is which stage, how many mini-batches may be begun, when the model is cut anew, and from where
// everybody goes on when a device is lost. Facts in, orders out; it never sees a payload, a clock or a socket.
//
//   allowing   as many mini-batches as can be begun anyhow, so that nothing is under way soon after no more are allowed
//   keeping    after every so many mini-batches, and after the last, each stage hands in its part as it is then. A model that is whole
//              is kept: it is what everybody goes on from after a loss, so what was done since is done again and counted once
//   cutting    now and then stages are compared (pipeline/replan.h). For a better cut, or for a device that has come, nothing more is
//   allowed;
//              when every stage has committed the same mini-batch and handed in, all are laid out anew
//   watching   a stage whose device stays at one piece of work for too long is expelled: see protocol/stage_progress.h
//   losing     those that are left are laid out anew at once; where they cannot hold the model, as soon as somebody comes
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
  pipeline::Cut cut;  // while all devices are as described; it begins when those of it are there
  /// The schedule for a cut, by what is known of the devices then.
  std::function<pipeline::Schedule(const pipeline::Problem&, const pipeline::Cut&)> reschedule;
  /// A cut for those devices that are there. None: they cannot hold the model.
  std::function<std::optional<pipeline::Cut>(const pipeline::Problem&)> repartition;
  std::uint64_t mini_batches = 0;
  std::uint64_t first_mini = 0;            // that is not done yet: a checkpoint had those before
  Duration step_limit = from_seconds(30);  // see StageProgress
};

// What a conductor hears. A count of mini-batches is from the beginning of training. ---------------------------------------------------

struct DeviceJoined {
  std::uint32_t device;
};
struct DeviceLost {
  std::uint32_t device;
};
/// Those who are there begin without the others.
struct StartTimeout {};
/// A stage has committed so many, and says that it took so long for so many micro-batches since it said so last. It is believed no more
/// than the time since the layout began, and no more micro-batches than it was allowed.
struct StageCommitted {
  std::uint32_t generation{};
  std::uint32_t stage{};
  std::uint64_t mini_batches{};
  double busy_s = 0;
  std::uint64_t micro_batches = 0;
};
/// Every stage has handed in what it had after so many: the model of then is whole.
struct ModelSnapshotComplete {
  std::uint64_t mini_batches;
};
/// Neighbours have lost each other, though both live.
struct StagesDisconnected {
  std::uint32_t generation;
};
/// A stage says, now and then, how far its device has come: so many pieces of work are done, and it is busy with another one or not.
struct StageReported {
  std::uint32_t generation{};
  std::uint32_t stage{};
  std::uint64_t done = 0;
  bool busy = false;
  bool slices_moved = false;  // of anybody's part of the model, to or from the conductor, since this was said last
};
using PipelineChiefEvent = std::variant<DeviceJoined, DeviceLost, StartTimeout, StageCommitted, ModelSnapshotComplete, StagesDisconnected,
                                        StageReported, DriverPaused>;

// What it answers -----------------------------------------------------------------------------------------------------------------------

enum class AssignReason : std::uint8_t { begins, unevenness, device_joined, loss };
/// Stages of the generation before are no more. Each device of the cut becomes a stage, with the model as it was kept after `from`.
struct AssignStages {
  std::uint32_t generation{};
  pipeline::Cut cut;
  pipeline::Schedule schedule;
  std::uint64_t from{};
  std::uint64_t allowed{};
  AssignReason why{};
  std::vector<std::uint32_t> joined;  // stages that are new to whoever watches: no layout had them, or they were expelled since
};
/// To every stage of this generation. Whoever has committed `allowed` and is to hand in does so.
struct AllowMore {
  std::uint64_t allowed{};
  bool submit_state = false;
};
/// So many are committed by every stage.
struct CommittedByAll {
  std::uint64_t mini_batches;
};
/// Too few are left to hold the model: the next who comes changes that.
struct NotEnoughDevices {};
struct PipelineDone {};
/// This device lives and yet does not get on: it is taken for gone until it moves again. The others are laid out next.
struct StageExpelled {
  std::uint32_t stage{};
  std::uint32_t device{};
  Duration took{};     // so far, for one piece of work
  Duration longest{};  // that one took before; 0: it has never committed
};
/// No stage is busy and none has anything to show for so long: something is lost on the way. All are laid out next.
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
  pipeline::Problem believed_;  // with device speeds as far as they were measured
  std::set<std::uint32_t> present_;
  std::uint32_t generation_ = 0;
  pipeline::Cut cut_;  // empty: nothing is laid out
  pipeline::Schedule schedule_;
  std::vector<std::uint64_t> committed_;  // by stage
  struct Measured {
    double busy_s = 0;
    std::uint64_t micro_batches = 0;
  };
  [[nodiscard]] Measured believed(Instant now, const StageCommitted& reported) const;
  Instant laid_at_{};
  std::uint64_t laid_from_ = 0;           // mini-batches that were done then
  std::vector<Measured> believed_since_;  // by stage, since then
  std::vector<Measured> measured_;        // by stage, since the last look
  std::uint64_t allowed_ = 0;
  std::uint64_t kept_ = 0;
  std::uint64_t state_submitted_ = 0;  // whole, though not everybody has said yet that it has committed it
  struct PendingCut {
    std::optional<pipeline::Cut> cut;  // none: what those who are there by then allow
    AssignReason why{};
  };
  std::optional<PendingCut> wanted_;  // when everything allowed is done
  StageProgress progress_;
  bool device_joined_ = false;
  bool finished_ = false;
  bool has_begun_ = false;             // something was laid out
  std::set<std::uint32_t> announced_;  // stages of any layout, without those that were expelled since
};

}  // namespace motley::protocol
