// An event file for TensorBoard: scalars over steps. Encoded by hand: four fields of one message do not justify protobuf.
//
//   file    := record*                                                                            numbers little-endian
//   record  := length:u64 mask(crc32c(length)):u32 data mask(crc32c(data)):u32                    TFRecord
//   mask(c) := rotr(c, 15) + 0xa282ead8
//   data    := Event{1: wall_time:double, 2: step:int64, 3: file_version:string | 5: Summary{1: value}}
//   value   := Value{1: tag:string, 2: simple_value:float}
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/result.h"
#include "trace/event.h"

namespace motley::report {

/// One file, flushed after every scalar so that TensorBoard can follow. close() reports a failed write.
class EventFile {
 public:
  /// folder/events.out.tfevents.SECONDS.HOST; the folder is made when it is missing. An existing file is appended to, which the
  /// format allows. Characters of `host` other than letters, digits, '.', '_' and '-' become '_'. Next::give_up where the folder is not
  /// writable.
  static Result<EventFile> open(const std::filesystem::path& folder, double wall_time_s, std::string_view host);

  /// Stored as a float. `step` is below 2^63.
  void scalar(std::string_view tag, std::uint64_t step, double wall_time_s, double value);
  /// Fails when a write has failed. No scalar may follow.
  Outcome close();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit EventFile(std::filesystem::path path);
  void record(std::string_view data);

  std::filesystem::path path_;
  std::ofstream out_;
};

/// Evaluations as scalars by samples: "accuracy", "loss", and "throughput" in samples per second since the last evaluation.
class TensorBoard : public trace::Sink {
 public:
  /// `file` outlives this. `began_wall_s`: the run's time 0, in seconds since 1970.
  TensorBoard(EventFile& file, double began_wall_s) : file_(file), began_wall_s_(began_wall_s) {}
  void on_event(const trace::Event& event) override;

 private:
  EventFile& file_;
  double began_wall_s_;
  Instant last_{};
  std::uint64_t last_samples_ = 0;
};

}  // namespace motley::report
