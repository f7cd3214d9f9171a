// A server that outlives its chiefs: one ServerProcess after the other, each for one connection to a chief. Nothing is carried over, so the
// next chief, whatever version it goes on from, finds a server that begins.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "runtime/reconnect.h"
#include "runtime/server_process.h"
#include "transport/anchor.h"

namespace motley::runtime {

class ReconnectingServer {
 public:
  ReconnectingServer(boost::asio::io_context& event_loop, ServerProcessOptions options, const ReconnectOptions& reconnect,
                     PrepareServer prepare, std::function<void(const std::string&)> log);
  ReconnectingServer(const ReconnectingServer&) = delete;
  ReconnectingServer& operator=(const ReconnectingServer&) = delete;
  ~ReconnectingServer() = default;

  /// Then run the pump; `over` is called once: good when a chief said that training has ended.
  void start(std::function<void(Outcome)> over);

 private:
  void begin();
  void ended(const Outcome& how);

  boost::asio::io_context& event_loop_;
  ServerProcessOptions options_;
  PrepareServer prepare_;
  std::function<void(const std::string&)> log_;
  std::function<void(Outcome)> over_;
  Reconnect reconnect_;
  std::unique_ptr<ServerProcess> server_;
  transport::Anchor<ReconnectingServer> anchor_{*this};
};

}  // namespace motley::runtime
