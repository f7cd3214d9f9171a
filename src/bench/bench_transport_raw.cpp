#include "bench/bench_transport_raw.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <span>
#include <thread>

namespace motley::bench {
namespace {

sockaddr_in loopback_address(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int tcp_socket() { return static_cast<int>(require_success(::socket(AF_INET, SOCK_STREAM, 0), "socket")); }

void no_delay(int socket) {
  const int on = 1;
  require_success(::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), "setsockopt");
}

void write_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty())
    bytes = bytes.subspan(static_cast<std::size_t>(require_success(::write(socket, bytes.data(), bytes.size()), "write")));
}

/// False at the end of the stream.
bool read_all(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const auto got = static_cast<std::size_t>(require_success(::read(socket, bytes.data(), bytes.size()), "read"));
    if (got == 0) return false;
    bytes = bytes.subspan(got);
  }
  return true;
}

class Buffer {
 public:
  explicit Buffer(const RawTrip& trip) : trip_(trip), floats_(trip.piece_bytes * trip.pieces / sizeof(float), 1.0F) {}
  std::span<std::byte> piece(std::size_t i) {
    return std::as_writable_bytes(std::span(floats_)).subspan(i * trip_.piece_bytes, trip_.piece_bytes);
  }

 private:
  RawTrip trip_;
  std::vector<float> floats_;
};

void give_back_what_comes(const RawTrip& trip, const NumberPipe& parent) {
  const int listener = tcp_socket();
  sockaddr_in address = loopback_address(0);
  socklen_t length = sizeof(address);
  require_success(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), "bind");
  require_success(::listen(listener, 1), "listen");
  require_success(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), "getsockname");
  parent.send(ntohs(address.sin_port));
  const int socket = static_cast<int>(require_success(::accept(listener, nullptr, nullptr), "accept"));
  no_delay(socket);
  Buffer buffer(trip);
  for (;;) {
    for (std::size_t i = 0; i < trip.pieces; ++i) {
      if (!read_all(socket, buffer.piece(i))) return;
      if (trip.at_once) write_all(socket, buffer.piece(i));
    }
    for (std::size_t i = 0; i < trip.pieces && !trip.at_once; ++i) write_all(socket, buffer.piece(i));
  }
}

void make_trips(const RawTrip& trip, std::uint16_t port, const NumberPipe& parent) {
  const int socket = tcp_socket();
  const sockaddr_in address = loopback_address(port);
  require_success(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), "connect");
  no_delay(socket);
  Buffer there(trip);
  Buffer back(trip);
  const auto send = [&] {
    for (std::size_t i = 0; i < trip.pieces; ++i) write_all(socket, there.piece(i));
  };
  parent.send(0);
  for (;;) {
    static_cast<void>(parent.receive());
    std::thread sender;
    if (trip.at_once)
      sender = std::thread(send);
    else
      send();
    for (std::size_t i = 0; i < trip.pieces; ++i) read_all(socket, back.piece(i));
    if (sender.joinable()) sender.join();
    parent.send(0);
  }
}

}  // namespace

std::vector<std::unique_ptr<Child>> raw_pairs(std::size_t pairs, const RawTrip& trip, std::vector<std::unique_ptr<Child>>& others) {
  std::vector<std::unique_ptr<Child>> starters;
  for (std::size_t i = 0; i < pairs; ++i) {
    others.push_back(std::make_unique<Child>([&](const NumberPipe& parent) { give_back_what_comes(trip, parent); }));
    const auto port = static_cast<std::uint16_t>(others.back()->receive());
    starters.push_back(std::make_unique<Child>([&](const NumberPipe& parent) { make_trips(trip, port, parent); }));
    static_cast<void>(starters.back()->receive());
  }
  return starters;
}

}  // namespace motley::bench
