// General sinks: a list in memory, a byte stream with its hash, and fan-out to several sinks.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trace/event.h"

namespace motley::trace {

/// Keeps every event. For tests, timelines and checkers.
class Recorder : public Sink {
 public:
  void on_event(const Event& event) override { events_.push_back(event); }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }

 private:
  std::vector<Event> events_;
};

/// Writes a trace file (trace/record.h) in blocks and hashes it with SHA-256. Two runs are equal when their hashes are.
class Writer : public Sink {
 public:
  using ByteSink = std::function<void(std::span<const std::byte>)>;
  /// Without `bytes` only the hash is computed.
  explicit Writer(ByteSink bytes = {});
  ~Writer() override;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void on_event(const Event& event) override;
  /// Passes the bytes of a partly filled block on.
  void flush();
  /// Ends the file; no event may follow. Returns its hash as 64 hexadecimal digits.
  [[nodiscard]] std::string finish();

 private:
  struct Digest;
  ByteSink bytes_;
  std::vector<std::byte> block_;
  std::unique_ptr<Digest> digest_;
};

/// Passes each event to several sinks, in order. Owns none of them.
class Tee : public Sink {
 public:
  explicit Tee(std::vector<Sink*> sinks) : sinks_(std::move(sinks)) {}
  void on_event(const Event& event) override {
    for (Sink* sink : sinks_) sink->on_event(event);
  }

 private:
  std::vector<Sink*> sinks_;
};

}  // namespace motley::trace
