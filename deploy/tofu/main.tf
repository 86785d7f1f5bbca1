# One machine with the server and some with agents, on AWS. Validated, never applied: docs/deploy.md.
#     tofu init
#     tofu apply -var image_id=ami-... -var subnet_id=subnet-... -var key_name=...
terraform {
  required_version = ">= 1.6"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.0"
    }
  }
}

provider "aws" {
  region = var.region
}

data "aws_subnet" "fleet" {
  id = var.subnet_id
}

# Agents reach the server, and people reach machines by ssh. Nothing else comes in.
resource "aws_security_group" "agent" {
  name_prefix = "prony-agent-"
  vpc_id      = data.aws_subnet.fleet.vpc_id

  ingress {
    description = "ssh"
    protocol    = "tcp"
    from_port   = 22
    to_port     = 22
    cidr_blocks = var.ssh_from
  }

  egress {
    description = "packages, models and the server"
    protocol    = "-1"
    from_port   = 0
    to_port     = 0
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_security_group" "server" {
  name_prefix = "prony-server-"
  vpc_id      = data.aws_subnet.fleet.vpc_id

  ingress {
    description     = "agents"
    protocol        = "tcp"
    from_port       = 7337
    to_port         = 7337
    security_groups = [aws_security_group.agent.id]
  }

  ingress {
    description = "ssh; the web pages by a tunnel"
    protocol    = "tcp"
    from_port   = 22
    to_port     = 22
    cidr_blocks = var.ssh_from
  }

  egress {
    description = "packages"
    protocol    = "-1"
    from_port   = 0
    to_port     = 0
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_instance" "server" {
  ami                    = var.image_id
  instance_type          = var.server_type
  subnet_id              = var.subnet_id
  key_name               = var.key_name
  vpc_security_group_ids = [aws_security_group.server.id]
  user_data              = templatefile("${path.module}/server.yaml.tftpl", { package = var.server_package })
  tags                   = { Name = "prony-server" }

  root_block_device {
    volume_size = var.server_disk_gib
    encrypted   = true
  }

  metadata_options {
    http_tokens = "required"
  }

  lifecycle {
    ignore_changes = [user_data] # results are on its disk
  }
}

resource "aws_instance" "agent" {
  count                  = var.agent_token == "" ? 0 : var.agents
  ami                    = var.image_id
  instance_type          = var.agent_type
  tenancy                = var.agent_tenancy
  subnet_id              = var.subnet_id
  key_name               = var.key_name
  iam_instance_profile   = var.agent_profile
  vpc_security_group_ids = [aws_security_group.agent.id]
  tags                   = { Name = "prony-agent-${count.index}" }

  user_data = templatefile("${path.module}/agent.yaml.tftpl", {
    package = var.agent_package
    server  = "http://${aws_instance.server.private_ip}:7337"
    token   = var.agent_token
  })

  root_block_device {
    volume_size = var.agent_disk_gib
    encrypted   = true
  }

  metadata_options {
    http_tokens = "required"
  }
}
