// For this room's tests: an owner of connections that remembers what it heard, and a crank for the io_context.
#pragma once
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace motley::transport {

using Memory = std::vector<std::byte>;

/// Runs handlers until `done` holds. The bound is a hang guard alone: nothing is concluded from how long it took.
inline testing::AssertionResult run_until(boost::asio::io_context& io, const std::function<bool()>& done) {
  constexpr std::chrono::seconds hung{60};
  const auto give_up = std::chrono::steady_clock::now() + hung;
  while (!done()) {
    io.restart();
    if (io.run_one_until(give_up) == 0)
      return testing::AssertionFailure() << (io.stopped() ? "nothing is left to do" : "nothing happens any more")
                                         << " and the condition does not hold";
  }
  return testing::AssertionSuccess();
}

/// Runs all handlers that are ready, and those they make ready, until nothing but sockets and timers could bring more.
inline void run_ready(boost::asio::io_context& io) {
  io.restart();
  while (io.poll() > 0) io.restart();
}

/// Bytes that differ from slice to slice and from place to place.
inline Memory pattern(std::size_t bytes, std::uint32_t slice) {
  Memory memory(bytes);
  std::uint32_t x = slice * 2'654'435'761U + 1;
  for (std::byte& b : memory) {
    x = x * 1'664'525U + 1'013'904'223U;
    b = static_cast<std::byte>(x >> 24);
  }
  return memory;
}

inline wire::Push push_of(std::uint32_t slice) { return {.worker = {1}, .step = {2}, .slice = {slice}, .bits = 32}; }
inline std::uint32_t slice_of(const wire::Message& head) { return std::get<wire::Push>(head).slice.value; }

class RecordingCallbacks : public ConnectionCallbacks {
 public:
  std::vector<wire::Message> messages;
  std::map<std::uint32_t, Memory> slices;  // where payloads were asked to go
  std::vector<std::uint32_t> arrived;      // in the order of received()
  std::vector<std::uint64_t> tickets;      // in the order of sent()
  std::vector<std::string> ends;           // one for each closed()
  bool spoken_to_after_the_end = false;
  bool asked_for_two_rooms = false;  // by one connection, before the first was received

  std::function<std::optional<std::size_t>(std::size_t)> room_for;  // unlike the size asked for, if it says so
  std::function<void(Connection&, const wire::Message&)> when_received = [](Connection&, const wire::Message&) {};
  std::function<void()> when_sent = [] {};
  std::function<void(Connection&)> when_heard = [](Connection&) {};
  std::function<void(Connection&)> when_closed = [](Connection&) {};

  [[nodiscard]] bool ended() const { return !ends.empty(); }

  void on_message(Connection& from, wire::Message message) override {
    note_time();
    messages.push_back(std::move(message));
    when_heard(from);
  }
  std::span<std::byte> receive_buffer(Connection& from, const wire::Message& head, std::size_t bytes) override {
    note_time();
    asked_for_two_rooms = !filling_.insert(&from).second || asked_for_two_rooms;
    Memory& memory = slices[slice_of(head)];
    memory.resize(room_for ? room_for(bytes).value_or(bytes) : bytes);
    return memory;
  }
  void received(Connection& from, const wire::Message& head) override {
    note_time();
    filling_.erase(&from);
    arrived.push_back(slice_of(head));
    when_received(from, head);
  }
  void sent(Connection&, std::uint64_t ticket) override {
    note_time();
    tickets.push_back(ticket);
    when_sent();
  }
  void closed(Connection& connection, const Error& why) override {
    note_time();
    ends.push_back(why.message);
    when_closed(connection);
  }

 private:
  void note_time() { spoken_to_after_the_end = spoken_to_after_the_end || ended(); }

  std::set<const Connection*> filling_;
};

}  // namespace motley::transport
