// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/picture/http_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ib::softib {
namespace {

const std::string kToken = "0123456789abcdef";

int status_of(const std::string& head, HttpRequest* parsed = nullptr) {
  HttpRequest request;
  int status = parse_http_request(head, request);
  if (status == 200) status = check_http_request(request, 8080, kToken);
  if (parsed != nullptr) *parsed = request;
  return status;
}

std::string get(const std::string& target, const std::string& host = "127.0.0.1:8080") {
  return "GET " + target + " HTTP/1.1\r\nAccept: */*\r\nHost: " + host + "\r\n\r\n";
}

TEST(HttpRequest, ThePageAndItsStateAreServed) {
  HttpRequest request;
  EXPECT_EQ(status_of(get("/?token=" + kToken)), 200);
  EXPECT_EQ(status_of(get("/state.json?since=17&token=" + kToken, "localhost:8080"), &request),
            200);
  EXPECT_EQ(request.path, "/state.json");
  EXPECT_EQ(request.since, 17u);
  EXPECT_EQ(status_of(get("/other?token=" + kToken)), 404);
}

TEST(HttpRequest, WithoutTheTokenNothingIs) {
  EXPECT_EQ(status_of(get("/")), 403);
  EXPECT_EQ(status_of(get("/?token=")), 403);
  EXPECT_EQ(status_of(get("/?token=" + kToken + "0")), 403);
  EXPECT_EQ(status_of(get("/?token=0123456789abcdee")), 403);
  EXPECT_EQ(status_of(get("/nothing")), 403) << "nor is it told which pages there are";
}

TEST(HttpRequest, ANameOfAnotherSiteForThisHostIsRefused) {
  EXPECT_EQ(status_of(get("/?token=" + kToken, "evil.example:8080")), 403);
  EXPECT_EQ(status_of(get("/?token=" + kToken, "127.0.0.1")), 403);
  EXPECT_EQ(status_of(get("/?token=" + kToken, "127.0.0.1:8081")), 403);
  EXPECT_EQ(status_of(get("/?token=" + kToken, "127.0.0.1:8080.evil.example")), 403);
}

TEST(HttpRequest, OnlyGetIsAMethod) {
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"), 405);
}

TEST(HttpRequest, WhatIsNoRequestIsMalformed) {
  for (const char* head :
       {"", "\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/2\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHOST: b\r\n\r\n", "GET x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1 x\r\nHost: a\r\n\r\n",
        "\xff\xff / HTTP/1.1\r\nHost: a\r\n\r\n"}) {
    EXPECT_EQ(status_of(head), 400) << head;
  }
}

TEST(HttpRequest, AnAnswerHasItsLengthAndEndsTheConnection) {
  const std::string answer = http_answer(403, "text/plain", "no");
  EXPECT_THAT(answer, testing::StartsWith("HTTP/1.1 403 Forbidden\r\n"));
  EXPECT_THAT(answer, testing::HasSubstr("Content-Length: 2\r\nConnection: close\r\n"));
  EXPECT_THAT(answer, testing::EndsWith("\r\n\r\nno"));
}

}  // namespace
}  // namespace ib::softib
