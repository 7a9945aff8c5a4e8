// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests to the services of drivers (verbs/services) from a program that means harm: any bytes
// for every code, files that are not its own, more than there is room for. Each request is answered
// once, others are served meanwhile, and in the end nothing is left.
//
// SOFTIB_SEED=n repeats one run of random requests; SOFTIB_ROUNDS=n makes more of them.
#include "base/buffers.h"
#include "base/sanitizer.h"
#include "peer/child.h"
#include "peer/programs.h"
#include "services/services_fixture.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ib::conformance {
namespace {

using control::CmCode;
using control::SaCode;

// A connection of its own, whose requests are bytes.
class RawRequests {
 public:
  explicit RawRequests(const std::string& socket) {
    std::string reason;
    auto channel = os::connect_for_requests(socket, reason);
    EXPECT_TRUE(channel) << reason;
    if (channel) channel_ = *std::move(channel);
  }

  struct Answer {
    Status status = Status::Pending;
    std::uint64_t information = 0;
    std::size_t size = 0;  // of its body
  };
  template <class Code>
  std::uint64_t send(Code code, std::uint32_t file, std::span<const std::byte> in) {
    const std::uint64_t tag = ++last_tag_;
    EXPECT_EQ(channel_->send(static_cast<std::uint32_t>(code), file, tag, in), Status::Ok);
    return tag;
  }
  // Takes what is here; after the time, returns false if nothing has come.
  bool take(int milliseconds) {
    pollfd waiting{channel_->descriptor(), POLLIN, 0};
    if (::poll(&waiting, 1, milliseconds) <= 0) return false;
    while (const auto answer = channel_->take()) {
      EXPECT_FALSE(answers_.contains(answer->tag)) << "answered twice";
      answers_[answer->tag] = {answer->status, answer->information, answer->body.size()};
    }
    EXPECT_EQ(channel_->end(), "") << "softibd has cut the connection";
    return channel_->end().empty();
  }
  Answer answer_of(std::uint64_t tag) {
    while (!answers_.contains(tag) && take(kTimeLimitMs)) {}
    return answers_[tag];
  }
  template <class Code, class In>
  Answer call(Code code, std::uint32_t file, const In& in) {
    return answer_of(send(code, file, bytes_of(in)));
  }
  std::uint64_t sent() const { return last_tag_; }
  const std::map<std::uint64_t, Answer>& answers() const { return answers_; }

 private:
  std::unique_ptr<platform::RequestChannel> channel_;
  std::uint64_t last_tag_ = 0;
  std::map<std::uint64_t, Answer> answers_;
};

class HostileServices : public ServicesFixture {
 protected:
  void TearDown() override {
    const auto path = west_->path_to(east_->gid());
    EXPECT_TRUE(path) << "others are not served: " << user::last_reason();
    east_.reset();
    west_.reset();
    EXPECT_EQ(wait_until_left(daemon_->socket_path()), "");
    daemon_.reset();
  }
  control::OpenServiceIn open_in(control::ServiceKind kind) {
    const control::AttachOut& info = east_->process().info();
    return {kind, info.slot, info.slot_generation, east_->hca().info().ca_index};
  }
  std::uint32_t open(RawRequests& raw, control::ServiceKind kind) {
    const auto opened = raw.call(control::ServiceCode::Open, 0, open_in(kind));
    EXPECT_EQ(opened.status, Status::Ok);
    return static_cast<std::uint32_t>(opened.information);
  }
};

TEST_F(HostileServices, FilesAreOfOnesOwnProcessAndHca) {
  RawRequests raw(daemon_->socket_path());
  const auto status_of = [&](const control::OpenServiceIn& in) {
    return raw.call(control::ServiceCode::Open, 0, in).status;
  };
  control::OpenServiceIn in = open_in(control::ServiceKind::Sa);
  in.kind = static_cast<control::ServiceKind>(2);
  EXPECT_EQ(status_of(in), Status::InvalidParameter);
  in.kind = static_cast<control::ServiceKind>(0xffffffff);
  EXPECT_EQ(status_of(in), Status::InvalidParameter);
  in = open_in(control::ServiceKind::Cm);
  in.ca_index = west_->hca().info().ca_index;
  EXPECT_EQ(status_of(in), Status::NotFound) << "it is another node's";
  in.ca_index = 0xffffffff;
  EXPECT_EQ(status_of(in), Status::NotFound);
  in = open_in(control::ServiceKind::Cm);
  in.slot_generation += 1;
  EXPECT_EQ(status_of(in), Status::Disconnected);
  in.slot = 0xffffffff;
  EXPECT_EQ(status_of(in), Status::Disconnected);
  EXPECT_EQ(raw.call(control::ServiceCode::Open, 0, std::uint32_t{0}).status, Status::Malformed);

  Child child({conformance_peer(), daemon_->socket_path(), "auto", kEast, "--services"});
  ASSERT_TRUE(child.lives() && child.has_output(kTimeLimitMs));
  std::set<Status> seen;
  for (std::uint32_t slot = 0; slot < 8; ++slot) {
    for (std::uint32_t generation = 0; generation < 8; ++generation) {
      in = {control::ServiceKind::Cm, slot, generation, east_->hca().info().ca_index};
      const auto other = raw.call(control::ServiceCode::Open, 0, in);
      if (other.status == Status::Ok) {
        EXPECT_EQ(slot, east_->process().info().slot);
      } else {
        seen.insert(other.status);
      }
    }
  }
  EXPECT_TRUE(seen.contains(Status::AccessDenied)) << "a slot of another process";
}

TEST_F(HostileServices, RequestsAreOfTheFilesKind) {
  RawRequests raw(daemon_->socket_path());
  const std::uint32_t sa = open(raw, control::ServiceKind::Sa);
  const std::uint32_t cm = open(raw, control::ServiceKind::Cm);
  EXPECT_EQ(raw.call(CmCode::Listen, sa, control::CmListenIn{}).status, Status::NotSupported);
  EXPECT_EQ(raw.call(SaCode::Join, cm, control::SaJoinIn{}).status, Status::NotSupported);
  EXPECT_EQ(raw.call(SaCode::Join, 0, control::SaJoinIn{}).status, Status::InvalidParameter);
  EXPECT_EQ(raw.call(SaCode::Join, cm + 1, control::SaJoinIn{}).status, Status::NotFound);
  EXPECT_EQ(raw.call(control::Code::CreateQp, cm, control::CreateQpIn{}).status,
            Status::NotSupported);
  EXPECT_EQ(raw.call(control::Code::QueryPort, sa, control::PortIn{}).status, Status::NotSupported);
  const control::CloseIn close{sa, 0};
  EXPECT_EQ(raw.call(control::Code::Close, 0, close).status, Status::Ok);
  EXPECT_EQ(raw.call(SaCode::Join, sa, control::SaJoinIn{}).status, Status::NotFound);
  // A service of softibd's own.
  control::CmListenIn listen;
  listen.service_id = 0x1'0050;
  EXPECT_EQ(raw.call(CmCode::Listen, cm, listen).status, Status::AlreadyExists);
  listen.service_mask = 0;
  EXPECT_EQ(raw.call(CmCode::Listen, cm, listen).status, Status::AlreadyExists);
}

TEST_F(HostileServices, WhatMayWaitHasALimit) {
  RawRequests raw(daemon_->socket_path());
  const std::uint32_t sa = open(raw, control::ServiceKind::Sa);
  const auto subscribed = raw.call(SaCode::Subscribe, sa, control::SaSubscribeIn{1, 64, 0});
  ASSERT_EQ(subscribed.status, Status::Ok);
  const control::SaHandleIn waits{static_cast<std::uint32_t>(subscribed.information)};
  const std::uint64_t first = raw.sent() + 1;
  for (std::uint32_t i = 0; i < control::kMostServiceRequests; ++i) {
    (void)raw.send(SaCode::WaitEvent, sa, bytes_of(waits));
  }
  EXPECT_EQ(raw.call(SaCode::WaitEvent, sa, waits).status, Status::InsufficientResources);
  EXPECT_EQ(raw.call(control::Code::Ping, 0, std::array<std::byte, 0>{}).status, Status::Ok);
  for (std::uint32_t i = 2; i < control::kMostServiceFiles + 1; ++i) {
    EXPECT_NE(open(raw, control::ServiceKind::Cm), 0u);
  }
  EXPECT_EQ(raw.call(control::ServiceCode::Open, 0, open_in(control::ServiceKind::Cm)).status,
            Status::InsufficientResources);
  const control::CloseIn close{sa, 0};
  EXPECT_EQ(raw.call(control::Code::Close, 0, close).status, Status::Ok);
  for (std::uint32_t i = 0; i < control::kMostServiceRequests; ++i) {
    ASSERT_EQ(raw.answer_of(first + i).status, Status::Cancelled);
  }
  EXPECT_EQ(raw.call(control::ServiceCode::Open, 0, open_in(control::ServiceKind::Cm)).status,
            Status::Ok);
}

// Requests with values that mean something, of which then some bytes are changed.
class AnyRequests {
 public:
  AnyRequests(unsigned seed, const control::SaPath& path, std::uint32_t qpn)
      : random_(seed), path_(path), qpn_(qpn) {}

  std::uint32_t number(std::uint32_t below) {
    return static_cast<std::uint32_t>(random_()) % below;
  }
  bool happens(std::uint32_t percent) { return number(100) < percent; }

  std::vector<std::byte> next(std::uint32_t code) {
    const auto bytes = plausible(code);
    std::vector<std::byte> in(bytes.begin(), bytes.end());
    if (happens(10)) {
      for (std::byte& byte : in) byte = any_byte();
    } else if (happens(50) && !in.empty()) {
      for (std::uint32_t i = number(8); i > 0; --i) {
        in[number(static_cast<std::uint32_t>(in.size()))] = any_byte();
      }
    }
    if (happens(3)) in.resize(number(static_cast<std::uint32_t>(2 * in.size() + 1)));
    return in;
  }

 private:
  std::byte any_byte() { return static_cast<std::byte>(happens(30) ? 0xff : number(256)); }
  std::uint32_t handle() { return number(happens(90) ? 12 : 200); }
  template <class In>
  std::vector<std::byte> copy(const In& in) {
    const auto bytes = bytes_of(in);
    return {bytes.begin(), bytes.end()};
  }
  // With the handle in front, as most have it.
  template <class In>
  std::vector<std::byte> with_handle(In in) {
    in.handle = handle();
    return copy(in);
  }
  std::vector<std::byte> plausible(std::uint32_t code);
  std::vector<std::byte> of_manager(CmCode code);
  std::vector<std::byte> of_administrator(SaCode code);

  std::mt19937 random_;
  control::SaPath path_;
  std::uint32_t qpn_;
};

std::vector<std::byte> AnyRequests::plausible(std::uint32_t code) {
  return control::is_sa(code) ? of_administrator(static_cast<SaCode>(code))
                              : of_manager(static_cast<CmCode>(code));
}

std::vector<std::byte> AnyRequests::of_manager(CmCode code) {
  switch (code) {
    case CmCode::Listen: {
      control::CmListenIn in;
      in.service_id = kService + number(3);
      in.services = static_cast<control::CmServices>(number(3));
      return copy(in);
    }
    case CmCode::Connect: {
      auto in = connect_in(path_, qpn_, kService + number(4));
      in.max_retries = 1;
      in.remote_response_timeout = 8;
      in.local_response_timeout = 8;
      return copy(in);
    }
    case CmCode::Resolve: {
      control::CmResolveIn in;
      in.service_id = kService + number(4);
      in.path = path_.path;
      in.response_timeout = 8;
      in.max_retries = 1;
      return copy(in);
    }
    case CmCode::Accept: {
      control::CmAcceptIn in;
      in.qpn = qpn_;
      return with_handle(in);
    }
    case CmCode::Respond: {
      control::CmRespondIn in;
      in.qpn = qpn_;
      return with_handle(in);
    }
    case CmCode::Query: {
      control::CmQueryIn in;
      in.state = static_cast<QpState>(number(8));
      return with_handle(in);
    }
    case CmCode::LoadPath: {
      control::CmLoadPathIn in;
      in.path = path_.path;
      return with_handle(in);
    }
    case CmCode::Establish:
    case CmCode::Delay:
    case CmCode::Disconnect:
    case CmCode::ConfirmDisconnect: return with_handle(control::CmMessageIn{});
    case CmCode::Reject: return with_handle(control::CmRejectIn{});
    case CmCode::AnswerPath: return with_handle(control::CmAnswerPathIn{});
    case CmCode::GetRequest:
    case CmCode::WaitEvent:
    case CmCode::PathMigrated:
    case CmCode::Destroy: return with_handle(control::CmHandleIn{});
  }
  return {};
}

std::vector<std::byte> AnyRequests::of_administrator(SaCode code) {
  switch (code) {
    case SaCode::QueryPath: {
      control::SaPathIn in;
      in.dgid = path_.path.dgid;
      return copy(in);
    }
    case SaCode::Register: {
      control::SaServiceIn in;
      in.service_id = kService + number(3);
      return copy(in);
    }
    case SaCode::Subscribe:
      return copy(control::SaSubscribeIn{1, static_cast<std::uint16_t>(64 + number(4)), 0});
    case SaCode::Join: {
      control::SaJoinIn in;
      in.mgid = group(static_cast<std::uint8_t>(number(4)));
      in.may_create = happens(70);
      return copy(in);
    }
    case SaCode::WaitEvent:
    case SaCode::Destroy: return with_handle(control::SaHandleIn{});
  }
  return {};
}

std::size_t output_of(std::uint32_t code) {
  if (control::is_sa(code)) {
    switch (static_cast<SaCode>(code)) {
      case SaCode::QueryPath: return sizeof(control::SaPath);
      case SaCode::Join: return sizeof(control::SaGroup);
      case SaCode::WaitEvent: return sizeof(control::SaEvent);
      case SaCode::Register:
      case SaCode::Subscribe:
      case SaCode::Destroy: return 0;
    }
  }
  switch (static_cast<CmCode>(code)) {
    case CmCode::GetRequest: return sizeof(control::CmRequest);
    case CmCode::Connect: return sizeof(control::CmReply);
    case CmCode::Accept:
    case CmCode::Disconnect:
    case CmCode::WaitEvent: return sizeof(control::CmEvent);
    case CmCode::LoadPath: return sizeof(control::CmPathAnswer);
    case CmCode::Query: return sizeof(control::CmQueryOut);
    case CmCode::Resolve: return sizeof(control::CmResolved);
    case CmCode::Listen:
    case CmCode::Establish:
    case CmCode::Reject:
    case CmCode::Delay:
    case CmCode::ConfirmDisconnect:
    case CmCode::AnswerPath:
    case CmCode::PathMigrated:
    case CmCode::Respond:
    case CmCode::Destroy: return 0;
  }
  return 0;
}

unsigned setting(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

TEST_F(HostileServices, AnyBytesOfAnyCodeAreAnsweredOnce) {
  const auto path = east_->path_to(east_->gid());
  ASSERT_TRUE(path) << user::last_reason();
  const std::uint32_t qpn = east_->make_qp()->qpn();
  const unsigned first = setting("SOFTIB_SEED", 1);
  const unsigned rounds = setting("SOFTIB_ROUNDS", IB_ADDRESS_SANITIZER != 0 ? 6 : 20);
  std::set<std::uint32_t> succeeded;
  for (unsigned seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    SCOPED_TRACE("repeat with SOFTIB_SEED=" + std::to_string(seed) + " SOFTIB_ROUNDS=1");
    AnyRequests any(seed, *path, qpn);
    RawRequests raw(daemon_->socket_path());
    const std::uint32_t sa = open(raw, control::ServiceKind::Sa);
    const std::uint32_t cm = open(raw, control::ServiceKind::Cm);
    std::map<std::uint64_t, std::uint32_t> codes;
    for (int i = 0; i < 1500; ++i) {
      const bool is_sa = any.happens(30);
      const std::uint32_t code =
          is_sa ? static_cast<std::uint32_t>(SaCode::QueryPath) + any.number(control::kSaCodes)
                : static_cast<std::uint32_t>(CmCode::Listen) + any.number(control::kCmCodes);
      codes[raw.send(code, is_sa ? sa : cm, any.next(code))] = code;
      (void)raw.take(any.happens(10) ? 1 : 0);
    }
    for (const std::uint32_t file : {sa, cm}) {
      EXPECT_EQ(raw.call(control::Code::Close, 0, control::CloseIn{file, 0}).status, Status::Ok);
    }
    for (const auto& [tag, code] : codes) {
      const auto answer = raw.answer_of(tag);
      ASSERT_NE(answer.status, Status::Pending) << "no answer, code " << code;
      if (answer.status == Status::Ok) {
        succeeded.insert(code);
        ASSERT_EQ(answer.size, output_of(code)) << "code " << code;
      } else {
        ASSERT_TRUE(answer.information == 0 || answer.information == output_of(code));
        ASSERT_GT(answer.size, answer.information) << "no reason, code " << code;
      }
    }
  }
  EXPECT_GE(succeeded.size(), 10u) << "hardly anything has happened";
}

}  // namespace
}  // namespace ib::conformance
