// A client with plain sockets that may break the protocol. It only takes the computation of proofs from src/.
//
//   server -> client   challenge := magic:u32 version:u16 nonce:32
//   client -> server   answer    := magic:u32 version:u16 lane:u8 session:16 job:32 nonce:32 proof:32
//   server -> client   verdict   := code:u8 proof:32                                                        numbers little-endian
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "transport/proof.h"
#include "wire/frame.h"

namespace real {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0;
    be_patient();
  }
  /// Connects to a unix socket.
  explicit RawClient(const std::string& path) : socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un there{};
    there.sun_family = AF_UNIX;
    path.copy(there.sun_path, sizeof there.sun_path - 1);
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0;
    be_patient();
  }
  ~RawClient() {
    if (socket_ >= 0) close(socket_);
  }
  RawClient(RawClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}
  RawClient& operator=(RawClient&&) = delete;
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  /// Errors are ignored: a refused client may find the socket closed.
  void send_bytes(const std::string& bytes) const {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t n = send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<std::size_t>(n);
    }
  }
  /// Reads exactly that many bytes; fewer when the other side closes or sends nothing for long.
  [[nodiscard]] std::string receive_bytes(std::size_t bytes) const {
    std::string received(bytes, '\0');
    std::size_t there = 0;
    while (there < bytes) {  // an attached descriptor ends a recv() early, even with MSG_WAITALL
      const ssize_t n = recv(socket_, received.data() + there, bytes - there, 0);
      if (n <= 0) break;
      there += static_cast<std::size_t>(n);
    }
    received.resize(there);
    return received;
  }
  /// True: the other side has closed the connection, whatever it sent before.
  [[nodiscard]] bool is_refused() const {
    std::array<char, 4096> block{};
    for (;;) {
      const ssize_t n = recv(socket_, block.data(), block.size(), 0);
      if (n == 0) return true;
      if (n < 0) return errno == ECONNRESET;
    }
  }

  /// Authenticates correctly, on control (0) or bulk (1). False: it was refused.
  [[nodiscard]] bool authenticate(int lane, const motley::transport::Session& session, const std::string& token) const {
    return prove(lane, session, token) && (lane == 0 || agree_on_the_stream());
  }
  /// The same up to the negotiation of the bulk lane.
  [[nodiscard]] bool prove(int lane, const motley::transport::Session& session, const std::string& token) const {
    namespace t = motley::transport;
    const std::string challenge = receive_bytes(38);
    if (challenge.size() != 38) return false;
    t::Exchange exchange{.client_nonce = t::random_bytes<32>(), .lane = static_cast<t::Lane>(lane), .session = session, .job = t::any_job};
    std::memcpy(exchange.server_nonce.data(), challenge.data() + 6, 32);
    const auto put = [](std::string& out, const auto& bytes) { out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); };
    std::string answer = challenge.substr(0, 6) + static_cast<char>(lane);
    put(answer, session);
    put(answer, exchange.job);
    put(answer, exchange.client_nonce);
    put(answer, t::prove(token, t::Role::client, exchange));
    send_bytes(answer);
    const std::string verdict = receive_bytes(33);
    return verdict.size() == 33 && verdict[0] == 0;
  }
  [[nodiscard]] int descriptor() const { return socket_; }

 private:
  /// Offers no shared memory, whatever the other side offers (transport/bulk_negotiation.h).
  [[nodiscard]] bool agree_on_the_stream() const {
    send_bytes(std::string(2, '\0'));
    const std::string length = receive_bytes(2);
    if (length.size() != 2) return false;
    const bool offers = length != std::string(2, '\0');
    return !offers || receive_bytes(8).size() == 8;
  }

  void be_patient() const {
    const timeval patience{10, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  int socket_;
  bool connected_ = false;
};

/// The head of a message that claims to be `length` bytes long: magic:u32 version:u16 kind:u16 length:u32.
inline std::string head_of_frame(std::uint16_t kind, std::uint32_t length) {
  std::string head = "MTLY";
  for (int i = 0; i < 2; ++i) head += static_cast<char>(motley::wire::version >> (8 * i));
  for (int i = 0; i < 2; ++i) head += static_cast<char>(kind >> (8 * i));
  for (int i = 0; i < 4; ++i) head += static_cast<char>(length >> (8 * i));
  return head;
}

}  // namespace real
