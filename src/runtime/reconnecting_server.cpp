#include "runtime/reconnecting_server.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <utility>

namespace motley::runtime {

ReconnectingServer::ReconnectingServer(boost::asio::io_context& event_loop, ServerProcessOptions options, const ReconnectOptions& reconnect,
                                       PrepareServer prepare, std::function<void(const std::string&)> log)
    : event_loop_(event_loop),
      options_(std::move(options)),
      prepare_(std::move(prepare)),
      log_(std::move(log)),
      reconnect_(event_loop, reconnect, fmt::format("server {}", options_.server.value), to_text(options_.chief), log_) {}

void ReconnectingServer::start(std::function<void(Outcome)> over) {
  over_ = std::move(over);
  begin();
}

void ReconnectingServer::begin() {
  server_ = std::make_unique<ServerProcess>(event_loop_, options_, prepare_, log_);
  // Posted: the server that says so stands inside its own call, and is to be destroyed.
  server_->start([this, here = anchor_.watch()](const Outcome& how) {
    boost::asio::post(event_loop_, [this, here, how] {
      if (!here.gone()) ended(how);
    });
  });
}

void ReconnectingServer::ended(const Outcome& how) {
  if (how) return over_(how);
  if (server_->reached()) reconnect_.proven();
  if (server_->job_received()) reconnect_.settled();
  server_.reset();
  if (const Outcome trying = reconnect_.lost(how.error(), [this] { begin(); }); !trying) over_(trying);
}

}  // namespace motley::runtime
