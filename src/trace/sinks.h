// Places for events to go: a list in memory, a byte stream with its fingerprint, several at once.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/event.h"

namespace motley::trace {

/// Keeps everything. For tests, timelines and checkers.
class Recorder : public Sink {
 public:
  void on_event(const Event& event) override { events_.push_back(event); }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }

 private:
  std::vector<Event> events_;
};

/// record := at:i64 kind:u8 why:u8 epoch:u32 worker:u32 step:u64 version:u64 first:u64 last:u64 value:f64 second:f64   (66 bytes,
/// little-endian)
inline constexpr std::size_t record_bytes = 66;
void write_record(const Event& event, std::span<std::byte, record_bytes> out);
/// Fails on an unknown kind.
Result<Event> read_record(std::span<const std::byte, record_bytes> bytes);

/// Turns events into records, fingerprints them (SHA-256) and hands them on in blocks. Two runs are the same run when their fingerprints
/// are.
class Writer : public Sink {
 public:
  using ByteSink = std::function<void(std::span<const std::byte>)>;
  /// `bytes` may be empty: then only the fingerprint is made.
  explicit Writer(ByteSink bytes = {});
  ~Writer() override;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void on_event(const Event& event) override;
  /// Ends the stream; nothing may be told after it. 64 hexadecimal digits.
  [[nodiscard]] std::string finish();
  /// Hands on what is not a whole block yet.
  void flush();

 private:
  struct Digest;
  ByteSink bytes_;
  std::vector<std::byte> block_;
  std::unique_ptr<Digest> digest_;
};

/// Tells each of several, in order. Owns none of them.
class Tee : public Sink {
 public:
  explicit Tee(std::vector<Sink*> sinks) : sinks_(std::move(sinks)) {}
  void on_event(const Event& event) override {
    for (Sink* sink : sinks_) sink->on_event(event);
  }

 private:
  std::vector<Sink*> sinks_;
};

/// For when nobody listens.
class Silence : public Sink {
 public:
  void on_event(const Event&) override {}
};

}  // namespace motley::trace
