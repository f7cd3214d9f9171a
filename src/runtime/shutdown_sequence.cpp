#include "runtime/shutdown_sequence.h"

namespace motley::runtime {
namespace {

constexpr std::chrono::seconds time_limit{2};  // for a Stop to arrive and the connection to be closed

}  // namespace

void ShutdownSequence::begin() {
  start_time_limit();
  boost::asio::post(event_loop_, [here = anchor_.watch()] {
    if (!here.gone()) here.get()->advance_();
  });
}

ShutdownSequence::Next ShutdownSequence::next(bool workers, bool servers) {
  if (workers && !time_is_up_) return Next::wait;
  if (servers && !servers_stopped_) {
    servers_stopped_ = true;
    start_time_limit();
    return Next::stop_servers;
  }
  return servers && !time_is_up_ ? Next::wait : Next::end;
}

void ShutdownSequence::start_time_limit() {
  time_is_up_ = false;
  timer_.expires_after(time_limit);
  timer_.async_wait([here = anchor_.watch(), start = ++starts_](const boost::system::error_code& cancelled) {
    if (cancelled || here.gone() || start != here.get()->starts_) return;
    here.get()->time_is_up_ = true;
    here.get()->advance_();
  });
}

}  // namespace motley::runtime
